// The rows: the structure plot, which zooms, sorts and groups, and the map.
const LABEL_GAP = 15; // pixels between slanted labels
const bars = { sort: "leading", group: Boolean(page.rows.groups), from: 0, to: rowCount, order: null };

function orderRows() {
  const best = d3.range(rowCount).map(leading);
  const h = Number(bars.sort.replace("component-", "")) - 1;
  const compare = {
    leading: (a, b) => best[a] - best[b] || membership(b, best[b]) - membership(a, best[a]) || a - b,
    table: (a, b) => a - b,
  }[bars.sort] ?? ((a, b) => membership(b, h) - membership(a, h) || a - b);
  const group = bars.group ? page.rows.groups : null;
  bars.order = d3.range(rowCount).sort((a, b) => (group ? group[a] - group[b] : 0) || compare(a, b));
}

// Where one group ends and the next begins, among the rows in sight.
function groupSpans() {
  const spans = [];
  for (let place = bars.from; place < bars.to; ++place) {
    const group = page.rows.groups[bars.order[place]];
    if (spans.length && spans.at(-1).group === group) spans.at(-1).to = place + 1;
    else spans.push({ group, name: page.rows.group_names[group], from: place, to: place + 1 });
  }
  return spans;
}

function drawStructure(width) {
  const left = 44, right = 8;
  const visible = bars.to - bars.from;
  const drawn = Math.min(visible, Math.max(200, Math.floor(width - left - right)));
  const places = d3.range(drawn).map((d) => bars.from + Math.floor(((d + 0.5) * visible) / drawn));
  const length = drawn * k;
  const [X, low, high, C] = [new Float64Array(length), new Float64Array(length), new Float64Array(length), new Array(length)];
  places.forEach((place, d) => {
    let sum = 0;
    for (const h of components) {
      const at = h * drawn + d;
      [X[at], low[at], C[at]] = [bars.from + ((d + 0.5) * visible) / drawn, sum, colour(h)];
      sum += membership(bars.order[place], h);
      high[at] = Math.min(1, sum);
    }
  });
  const spans = bars.group ? groupSpans() : [];
  const pixels = (span) => ((span.to - span.from) / visible) * (width - left - right);
  const flat = spans.every((span) => span.name.length * 6.6 < pixels(span) - 2);
  const longest = Math.min(22, d3.max(spans, (span) => span.name.length) ?? 0);
  const below = !bars.group ? 14 : flat ? 26 : 16 + longest * 4.8;
  let last = -Infinity;
  const labels = spans.filter((span) => {
    const middle = (((span.from + span.to) / 2 - bars.from) / visible) * (width - left - right);
    if (!flat && middle < last + LABEL_GAP) return false; // no room; hovering tells
    last = middle;
    return true;
  });
  const tip = places.map((place, d) => ({ x: X[d], row: bars.order[place] }));
  const svg = Plot.plot({
    width, height: 250 + below, marginLeft: left, marginRight: right, marginBottom: below, marginTop: 8, style: font, ariaLabel: "Memberships of rows as stacked bars",
    x: { domain: [bars.from, bars.to], axis: null }, y: { domain: [0, 1], tickFormat: "%", label: null, ticks: 5 },
    marks: [
      Plot.areaY({ length }, { x: X, y1: low, y2: high, fill: C, z: C, curve: "step", shapeRendering: "crispEdges", clip: true }),
      Plot.ruleX(spans.slice(1), { x: "from", stroke: "var(--paper)", strokeWidth: spans.length > 20 ? 1 : 2 }),
      Plot.text(labels, {
        x: (span) => (span.from + span.to) / 2, text: (span) => shortened(span.name, flat ? 99 : 22), title: "name", frameAnchor: "bottom",
        dy: flat ? 16 : 10, rotate: flat ? 0 : -38, textAnchor: flat ? "middle" : "end",
      }),
      Plot.ruleX(tip, Plot.pointerX({ x: "x", stroke: "var(--ink)", strokeOpacity: 0.6 })),
      Plot.tip(tip, Plot.pointerX({ x: "x", y: () => 0.5, title: (point) => describeRow(point.row), preferredAnchor: "left" })),
    ],
  });
  zoomByDragging(svg, width, left, right, below);
  document.getElementById("seen").textContent =
    `${visible === rowCount ? `All ${rowCount.toLocaleString("en")} rows of this page` : `Rows ${(bars.from + 1).toLocaleString("en")} to ${bars.to.toLocaleString("en")} of ${rowCount.toLocaleString("en")} in this order`}` +
    `${drawn < visible ? `; ${drawn.toLocaleString("en")} of them, evenly spaced, fit into this width: zoom in to see each` : ""}.`;
  return svg;
}

function zoomByDragging(svg, width, left, right, below) {
  const place = (x) => bars.from + ((x - left) / (width - left - right)) * (bars.to - bars.from);
  const brush = d3.brushX().extent([[left, 8], [width - right, 250]]).touchable(() => false).on("end", ({ selection }) => {
    if (selection) look(Math.floor(place(selection[0])), Math.ceil(place(selection[1])));
  });
  // Under the marks that follow the pointer, so that both work.
  d3.select(svg).append("g").attr("class", "brush").call(brush);
}

let redrawStructure = () => {};

function look(from, to) {
  const wide = Math.max(Math.min(10, rowCount), Math.min(rowCount, Math.round(to - from)));
  bars.from = Math.max(0, Math.min(rowCount - wide, Math.round(from)));
  bars.to = bars.from + wide;
  redrawStructure();
}

function zoom(factor) {
  const middle = (bars.from + bars.to) / 2, half = ((bars.to - bars.from) * factor) / 2;
  look(middle - half, middle + half);
}

function move(step) {
  const by = Math.round((bars.to - bars.from) * step);
  look(bars.from + by, bars.to + by);
}

// --- The map

// A row stands at the mean of the components' corners, weighted by its memberships.
function placeOf(i) {
  return page.rows.corners.map((corner) => d3.sum(components, (h) => corner[h] * membership(i, h)));
}

function drawMap(width) {
  const size = Math.min(width, 560);
  const by = document.getElementById("map-colour").value;
  const points = page.rows.mapped.map((i) => {
    const [x, y] = placeOf(i);
    return { i, x, y };
  });
  const corners = components.map((h) => ({ h, x: page.rows.corners[0][h], y: page.rows.corners[1][h] }));
  const round = d3.sort(corners, (corner) => Math.atan2(corner.y, corner.x));
  const numbers = corners.map((corner) => ({ h: corner.h, x: 1.09 * corner.x, y: 1.09 * corner.y }));
  const shade = by === "group" ? (i) => page.group_colours[page.rows.groups[i]] : (i) => colour(leading(i));
  return Plot.plot({
    width: size, height: size, margin: 12, style: font, ariaLabel: "Map of rows: rows with alike memberships stand close",
    x: { axis: null, domain: [-1.12, 1.12] }, y: { axis: null, domain: [-1.12, 1.12] },
    marks: [
      Plot.line([...round, round[0]], { x: "x", y: "y", stroke: "var(--line)" }),
      Plot.dot(points, { x: "x", y: "y", fill: (point) => shade(point.i), fillOpacity: 0.6, r: points.length > 1500 ? 2 : 3 }),
      Plot.dot(numbers, { x: "x", y: "y", r: 9, fill: "var(--paper)", stroke: (corner) => colour(corner.h), strokeWidth: 2.5 }),
      Plot.text(numbers, { x: "x", y: "y", text: (corner) => String(corner.h + 1), fontWeight: 600, fontSize: 11 }),
      Plot.tip(points, Plot.pointer({ x: "x", y: "y", title: (point) => describeRow(point.i) })),
    ],
  });
}

function drawStrip(width) {
  const bins = d3.bin().domain([0, 1]).thresholds(d3.range(0.05, 1, 0.05))(d3.range(rowCount).map((i) => membership(i, 0)));
  const rows = bins.map((bin) => ({ from: bin.x0, to: bin.x1, share: bin.length / rowCount }));
  return Plot.plot({
    width, height: 260, style: font, marginBottom: 36, ariaLabel: "Rows by their membership in component 1",
    x: { domain: [0, 1], label: "membership in component 1 (the rest is component 2)", labelAnchor: "center", labelArrow: "none" },
    y: { label: "share of the rows", tickFormat: "%", grid: true, labelArrow: "none" },
    marks: [
      Plot.rectY(rows, { x1: "from", x2: "to", y: "share", inset: 0.5, fill: (bin) => d3.interpolateRgb(colour(1), colour(0))((bin.from + bin.to) / 2), title: (bin) => `${bin.from.toFixed(2)} to ${bin.to.toFixed(2)}: ${percent(bin.share)} of the rows`, tip: true }),
      Plot.ruleY([0]),
    ],
  });
}

function mapLegend() {
  const legend = document.getElementById("map-legend");
  if (!legend) return;
  const byGroup = document.getElementById("map-colour").value === "group";
  const names = byGroup ? page.rows.group_names : components.map((h) => String(h + 1));
  legend.replaceChildren(...names.map((name, g) => {
    const entry = document.createElement("span"), chip = document.createElement("span");
    chip.className = "chip";
    chip.style.background = byGroup ? page.group_colours[g] : colour(g);
    entry.append(chip, name);
    return entry;
  }));
}

function startMemberships() {
  if (k < 2) return;
  orderRows();
  const rowsOf = () => [
    ["row", ...(page.rows.groups ? [page.rows.by] : []), ...components.map((h) => `component_${h + 1}`)],
    ...bars.order.map((i) => [page.rows.ids[i], ...(page.rows.groups ? [groupOf(i)] : []), ...components.map((h) => membership(i, h).toFixed(4))]),
  ];
  redrawStructure = figure("structure", drawStructure, { data: rowsOf, legend: true });
  document.getElementById("row-sort").addEventListener("change", (event) => {
    bars.sort = event.target.value;
    orderRows();
    redrawStructure();
  });
  const group = document.getElementById("row-group");
  if (group) group.addEventListener("change", (event) => {
    bars.group = event.target.checked;
    orderRows();
    redrawStructure();
  });
  const acts = { "zoom-in": () => zoom(0.5), "zoom-out": () => zoom(2), "zoom-left": () => move(-0.5), "zoom-right": () => move(0.5), "zoom-all": () => look(0, rowCount) };
  for (const [id, act] of Object.entries(acts)) document.getElementById(id).addEventListener("click", act);
  if (k === 2) {
    figure("map", drawStrip, { data: rowsOf });
    return;
  }
  const redraw = figure("map", drawMap, {
    legend: true,
    data: () => [["row", "x", "y"], ...page.rows.mapped.map((i) => [page.rows.ids[i], ...placeOf(i).map((value) => value.toFixed(4))])],
  });
  mapLegend();
  document.getElementById("map-colour").addEventListener("change", () => {
    mapLegend();
    redraw();
  });
}
