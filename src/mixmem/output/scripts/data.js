// What the page knows: the JSON that output/payload.py wrote, its packed numbers unpacked.
const page = JSON.parse(document.getElementById("data").textContent);
const k = page.k;
const components = d3.range(k);

function unpack(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Kind(bytes.buffer);
}

// Shares between 0 and 1, stored as whole numbers of 1/65535.
function unpackShares(text) {
  return text === null ? null : Float32Array.from(unpack(text, Uint16Array), (value) => value / 65535);
}

const theta = unpackShares(page.variables.theta);
const lower = unpackShares(page.variables.lower);
const upper = unpackShares(page.variables.upper);
const apart = Float32Array.from(unpack(page.variables.apart, Uint8Array), (value) => value / 255);
const shares = unpackShares(page.rows.memberships);
const rowCount = page.rows.ids.length;

const variables = page.variables.names.map((name, j) => {
  const levels = page.variables.sets[page.variables.levels[j]];
  return { j, name, levels, start: 0, spread: page.variables.spread[j], number: page.variables.numbers[j] ?? null };
});
let used = 0;
for (const variable of variables) {
  variable.start = used;
  used += variable.levels.length;
}

const percent = (value) => `${(100 * value).toFixed(value > 0 && value < 0.0995 ? 1 : 0)}%`;
const colour = (h) => page.colours[h];
const groupOf = (i) => (page.rows.groups ? page.rows.group_names[page.rows.groups[i]] : null);
const membership = (i, h) => shares[i * k + h];

function leading(i) {
  let best = 0;
  for (let h = 1; h < k; ++h) if (membership(i, h) > membership(i, best)) best = h;
  return best;
}

function describeRow(i) {
  const largest = components.filter((h) => membership(i, h) >= 0.005).sort((a, b) => membership(i, b) - membership(i, a));
  const lines = largest.slice(0, 6).map((h) => `component ${h + 1}: ${percent(membership(i, h))}`);
  const group = groupOf(i);
  return [`row ${page.rows.ids[i]}`, ...(group === null ? [] : [`${page.rows.by}: ${group}`]), ...lines].join("\n");
}

function shortened(text, length) {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
