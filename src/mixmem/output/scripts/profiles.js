// All variables: a card each, with what the components say of it; searched, sorted, and drawn when they come into view.
const CARDS = 30, LEVELS = 12;
const view = { search: "", sort: "spread", shown: CARDS, style: k <= 6 ? "bars" : "heat" };

// The levels to draw: those that differ most where there are many, in their own order.
function levelsOf(variable, all) {
  const places = d3.range(variable.levels.length);
  if (all || places.length <= LEVELS) return places;
  const range = (l) => {
    const own = components.map((h) => theta[(variable.start + l) * k + h]);
    return d3.max(own) - d3.min(own);
  };
  return places.sort((a, b) => range(b) - range(a)).slice(0, LEVELS).sort((a, b) => a - b);
}

function cellsOf(variable, levels) {
  return levels.flatMap((l, place) => components.map((h) => {
    const at = (variable.start + l) * k + h;
    return { variable: variable.name, level: variable.levels[l], place, h, value: theta[at], low: lower ? lower[at] : null, high: upper ? upper[at] : null };
  }));
}

const between = (cell) => (cell.low === null ? "" : ` (95% interval ${percent(cell.low)} to ${percent(cell.high)})`);
const saidCell = (cell) => `${shortened(cell.variable, 60)}: ${cell.level}\ncomponent ${cell.h + 1}: ${percent(cell.value)}${between(cell)}`;

// Bars: levels one under the other, in each a bar per component with its interval.
function drawBars(variable, levels, width) {
  const cells = cellsOf(variable, levels);
  const longest = d3.max(levels, (l) => variable.levels[l].length);
  const beside = longest * 6.8 + 16 <= 0.3 * width;
  const thick = Math.max(4, Math.min(9, 46 / k)), gap = beside ? 6 : 21;
  const block = k * thick + gap;
  const top = (cell) => cell.place * block + (beside ? gap / 2 : gap - 3) + cell.h * thick;
  const largest = d3.max(cells, (cell) => Math.max(cell.value, cell.high ?? 0));
  const high = largest > 0.25 ? 1 : Math.max(0.01, largest); // one scale for all cards, except where all is rare
  const left = beside ? longest * 6.8 + 16 : 6;
  const named = levels.map((l, place) => ({ level: variable.levels[l], y: place * block + (beside ? block / 2 : gap - 8) }));
  const label = beside ? { frameAnchor: "left", textAnchor: "end", dx: -8 } : { frameAnchor: "left", textAnchor: "start", lineWidth: width / 13, textOverflow: "ellipsis-end" };
  return Plot.plot({
    width, height: levels.length * block + 30, marginLeft: left, marginRight: 18, marginTop: 4, marginBottom: 26, style: font, ariaLabel: `${variable.name}: probabilities of its levels in every component`,
    x: { domain: [0, high], tickFormat: "%", label: null, ticks: 4, grid: true }, y: { domain: [levels.length * block, 0], axis: null },
    marks: [
      Plot.rect(cells, { x1: 0, x2: "value", y1: top, y2: (cell) => top(cell) + thick - 1, fill: (cell) => colour(cell.h) }),
      lower ? Plot.ruleY(cells, { x1: "low", x2: "high", y: (cell) => top(cell) + (thick - 1) / 2, stroke: "var(--ink)", strokeWidth: 1.2 }) : null,
      Plot.text(named, { y: "y", text: "level", title: "level", ...label }),
      Plot.tip(cells, Plot.pointerY({ x: "value", y: (cell) => top(cell) + thick / 2, title: saidCell })),
    ],
  });
}

// Shades: levels down, components across, so that any number of components can be seen at once.
function drawHeat(variable, levels, width) {
  const cells = cellsOf(variable, levels);
  const longest = d3.max(levels, (l) => variable.levels[l].length);
  const left = Math.min(0.36 * width, 12 + 6.8 * longest);
  const across = (width - left - 4) / k;
  return Plot.plot({
    width, height: 34 + 22 * levels.length, marginLeft: left, marginRight: 4, marginTop: 32, marginBottom: 2, style: font, ariaLabel: `${variable.name}: probabilities of its levels in every component`,
    x: { domain: components, axis: null, padding: 0.04 }, y: { domain: d3.range(levels.length), axis: null, padding: 0.06 },
    marks: [
      ...componentNames(across),
      Plot.cell(cells, { x: "h", y: "place", fill: "var(--accent)", fillOpacity: (cell) => 0.05 + 0.95 * cell.value, title: saidCell, tip: true }),
      across >= 30 ? Plot.text(cells, { x: "h", y: "place", text: (cell) => `${Math.round(100 * cell.value)}%`, fill: (cell) => (cell.value > 0.6 ? "white" : "currentColor"), fontSize: 11, pointerEvents: "none" }) : null,
      Plot.text(levels, { y: (l, place) => place, text: (l) => variable.levels[l], title: (l) => variable.levels[l], frameAnchor: "left", textAnchor: "end", dx: -6, lineWidth: (left - 8) / 12, textOverflow: "ellipsis-end" }),
    ],
  });
}

// Numbers of the components above their columns, as many as there is room for, and their colours.
function componentNames(across) {
  const named = across < 14 ? components.filter((h) => h === 0 || (h + 1) % 5 === 0) : components;
  return [
    Plot.text(named, { x: (h) => h, frameAnchor: "top", dy: -20, text: (h) => String(h + 1), fontSize: 11 }),
    Plot.dot(components, { x: (h) => h, frameAnchor: "top", dy: -5, r: Math.min(3, across / 4), symbol: "square", fill: (h) => colour(h) }),
  ];
}

// A number: its mean in every component with its interval, over a line of one standard deviation to both sides.
function drawNumber(variable, width) {
  const { mean, deviation, low, high } = variable.number;
  const rows = components.map((h) => ({ h, mean: mean[h], from: mean[h] - deviation[h], to: mean[h] + deviation[h], low: low ? low[h] : null, high: high ? high[h] : null }));
  const write = d3.format(".4~g");
  const said = (row) => `component ${row.h + 1}: mean ${write(row.mean)}${row.low === null ? "" : ` (95% interval ${write(row.low)} to ${write(row.high)})`}, standard deviation ${write(deviation[row.h])}`;
  return Plot.plot({
    width, height: 40 + Math.max(9, 110 / k) * k, marginLeft: 26, marginRight: 18, marginTop: 6, marginBottom: 28, style: font, ariaLabel: `${variable.name}: its mean in every component`,
    x: { label: null, ticks: Math.max(3, Math.floor(width / 90)), tickFormat: "~s", grid: true, nice: true }, y: { domain: components, axis: null },
    marks: [
      Plot.ruleY(rows, { y: "h", x1: "from", x2: "to", stroke: (row) => colour(row.h), strokeWidth: 1.5, strokeOpacity: 0.55 }),
      low ? Plot.ruleY(rows, { y: "h", x1: "low", x2: "high", stroke: "var(--ink)", strokeWidth: 3 }) : null,
      Plot.dot(rows, { y: "h", x: "mean", fill: (row) => colour(row.h), stroke: "var(--paper)", r: Math.min(5, 40 / k + 2), title: said, tip: true }),
      Plot.text(rows, { y: "h", text: (row) => String(row.h + 1), frameAnchor: "left", dx: -14, fontSize: k > 12 ? 8 : 11 }),
    ],
  });
}

// The same in words for who cannot see the drawing, and for the CSV.
function tableOf(variable) {
  const rows = variable.levels.flatMap((level, l) => components.map((h) => {
    const at = (variable.start + l) * k + h;
    return [variable.name, level, "probability", h + 1, theta[at].toFixed(4), lower ? lower[at].toFixed(4) : "", upper ? upper[at].toFixed(4) : ""];
  }));
  if (!variable.number) return rows;
  const { mean, deviation, low, high } = variable.number;
  return [
    ...rows,
    ...components.map((h) => [variable.name, "", "mean", h + 1, mean[h], low ? low[h] : "", high ? high[h] : ""]),
    ...components.map((h) => [variable.name, "", "standard deviation", h + 1, deviation[h], "", ""]),
  ];
}

const PROFILE_COLUMNS = ["variable", "level", "statistic", "component", "estimate", "lower", "upper"];

function card(variable) {
  const made = document.createElement("section");
  made.className = "card";
  made.dataset.variable = variable.name;
  const title = document.createElement("h3");
  const spread = document.createElement("small");
  title.append(variable.name, " ");
  spread.textContent = `spread ${variable.spread.toFixed(2)}`;
  spread.title = "How far components are from the average row: 0 alike, 1 nothing in common";
  title.append(spread);
  made.append(title);
  const name = `variable-${variable.j + 1}`;
  const data = () => [PROFILE_COLUMNS, ...tableOf(variable)];
  if (variable.levels.length) made.append(levelsBox(variable, name, data));
  if (variable.number) {
    const box = document.createElement("div");
    if (variable.levels.length) {
      const note = document.createElement("p");
      note.className = "note";
      note.textContent = "Mean of the others, with one standard deviation to both sides";
      made.append(note);
    }
    made.append(box);
    figure(`${name}-mean`, (width) => drawNumber(variable, width), { data, box, legend: true });
  }
  return made;
}

function levelsBox(variable, name, data) {
  const box = document.createElement("div");
  const drawing = view.style === "bars" ? drawBars : drawHeat;
  let all = false;
  const again = figure(name, (width) => drawing(variable, levelsOf(variable, all), width), { data, box, legend: view.style === "bars" });
  const left = variable.levels.length - LEVELS;
  if (left > 0) {
    const more = button(`Show ${left} more level${left > 1 ? "s" : ""}`, "Show all levels; those above differ most", () => {
      all = true;
      more.remove();
      again();
    });
    more.className = "more";
    box.append(more);
  }
  return box;
}

function found() {
  const words = view.search.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (variable) => {
    const text = `${variable.name}\n${variable.levels.join("\n")}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const kept = words.length ? variables.filter(matches) : [...variables];
  const order = {
    spread: (a, b) => b.spread - a.spread || a.j - b.j,
    name: (a, b) => a.name.localeCompare(b.name, "en", { numeric: true }) || a.j - b.j,
    table: (a, b) => a.j - b.j,
  };
  const h = Number(view.sort.replace("component-", "")) - 1;
  return kept.sort(order[view.sort] ?? ((a, b) => apart[b.j * k + h] - apart[a.j * k + h] || a.j - b.j));
}

function showProfiles() {
  const list = document.getElementById("cards");
  const kept = found();
  awaited.forEach((redraw, place) => {
    if (list.contains(place)) awaited.delete(place);
  });
  list.replaceChildren(...kept.slice(0, view.shown).map(card));
  const count = document.getElementById("count");
  count.textContent = `${Math.min(view.shown, kept.length).toLocaleString("en")} of ${kept.length.toLocaleString("en")} ${view.search ? "variables found" : "variables"} shown`;
  document.getElementById("more").hidden = kept.length <= view.shown;
}

function startProfiles() {
  if (k < 2) return;
  const on = (id, event, key) => document.getElementById(id).addEventListener(event, (happened) => {
    view[key] = happened.target.value;
    view.shown = CARDS;
    showProfiles();
  });
  document.getElementById("style").value = view.style;
  on("search", "input", "search");
  on("sort", "change", "sort");
  on("style", "change", "style");
  document.getElementById("more").addEventListener("click", () => {
    view.shown += 2 * CARDS;
    showProfiles();
  });
  document.getElementById("all-profiles").addEventListener("click", () => save("profiles.csv", csv([PROFILE_COLUMNS, ...variables.flatMap(tableOf)])));
  document.getElementById("all-spreads").addEventListener("click", () => {
    const titles = ["variable", "spread", ...components.map((h) => `component_${h + 1}`)];
    save("variables.csv", csv([titles, ...variables.map((v) => [v.name, v.spread, ...components.map((h) => apart[v.j * k + h].toFixed(3))])]));
  });
  showProfiles();
}
