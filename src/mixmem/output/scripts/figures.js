// A figure: drawn when it comes into view, and anew when its width changes, with buttons to download it.
const font = { fontFamily: "inherit", fontSize: "12px", overflow: "visible", background: "none" };
const awaited = new Map();
const near = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) awaited.get(entry.target)?.();
}, { rootMargin: "300px" });

function figure(name, draw, { data = null, legend = false, box = document.getElementById(name) } = {}) {
  const place = document.createElement("div");
  place.className = "drawing awaited";
  let width = 0, waiting = 0;
  const redraw = () => {
    near.unobserve(place);
    awaited.delete(place);
    place.classList.remove("awaited");
    width = Math.max(240, Math.floor(place.clientWidth));
    place.replaceChildren(draw(width));
  };
  const svg = () => {
    if (awaited.has(place)) redraw();
    return place.querySelector("svg");
  };
  const tools = document.createElement("div");
  tools.className = "tools";
  tools.append(
    button("SVG", "Download this figure as SVG", () => saveSvg(name, svg(), legend)),
    button("PNG", "Download this figure as PNG", () => savePng(name, svg(), legend)),
  );
  if (data) tools.append(button("CSV", "Download the numbers of this figure as CSV", () => save(`${name}.csv`, csv(data()))));
  box.prepend(tools, place);
  awaited.set(place, redraw);
  near.observe(place);
  new ResizeObserver(() => {
    if (awaited.has(place) || Math.abs(place.clientWidth - width) < 2 || place.clientWidth < 1) return;
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 120);
  }).observe(place);
  return () => {
    if (!awaited.has(place)) redraw();
  };
}

window.addEventListener("beforeprint", () => [...awaited.values()].forEach((redraw) => redraw()));

// --- The rows' largest memberships

function drawHistogram(width) {
  const { tops, clear_from: clear } = page.histogram;
  const bars = tops.map((share, b) => ({ from: b / tops.length, to: (b + 1) / tops.length, share }));
  return Plot.plot({
    width, height: 230, style: font, marginBottom: 36, ariaLabel: "Histogram of the largest membership of each row",
    x: { label: "largest membership of a row", domain: [0, 1], labelAnchor: "center", labelArrow: "none" },
    y: { label: "share of the rows", tickFormat: "%", grid: true, labelArrow: "none" },
    marks: [
      Plot.rectY(bars, {
        x1: "from", x2: "to", y: "share", inset: 0.5, fill: "var(--accent)", fillOpacity: (bar) => (bar.from >= clear - 1e-9 ? 1 : 0.45),
        title: (bar) => `${bar.from.toFixed(2)} to ${bar.to.toFixed(2)}: ${percent(bar.share)} of the rows`, tip: true,
      }),
      Plot.ruleY([0]),
    ],
  });
}

// --- The likelihood over alpha0

function drawAlpha0(width) {
  const { tried, value } = page.alpha0;
  const top = d3.max(tried, (point) => point[1]);
  // Far from the truth the likelihood falls off so deep that the peak would look flat: those points are cut off.
  const low = Math.max(d3.min(tried, (point) => point[1]), top - 5 * (top - d3.median(tried, (point) => point[1])));
  const points = tried.map(([alpha0, likelihood]) => ({ alpha0, likelihood }));
  const margin = 0.06 * (top - low || 1);
  return Plot.plot({
    width, height: 230, style: font, marginLeft: 60, marginBottom: 36, clip: true, ariaLabel: "Log-likelihood of a row over alpha0",
    x: { type: "log", label: "alpha0", labelAnchor: "center", labelArrow: "none", ticks: Math.max(3, Math.floor(width / 90)), tickFormat: "~g" },
    y: { label: "mean log-likelihood of a row", domain: [low - margin, top + margin], grid: true, labelArrow: "none" },
    marks: [
      Plot.ruleX([value], { stroke: "var(--soft)", strokeDasharray: "4 3" }),
      Plot.line(points, { x: "alpha0", y: "likelihood", stroke: "var(--accent)", strokeWidth: 2, clip: true }),
      Plot.dot(points, {
        x: "alpha0", y: "likelihood", fill: "var(--accent)", clip: true, tip: true,
        title: (point) => `alpha0 ${point.alpha0.toPrecision(3)}: ${point.likelihood.toFixed(3)}`,
      }),
    ],
  });
}

// --- How the fit came to rest

function drawHistory(width) {
  const points = page.history.values.map((value, i) => ({ round: i + page.history.first, value }));
  return Plot.plot({
    width, height: 230, style: font, marginLeft: 60, marginBottom: 36, ariaLabel: page.history.label,
    x: { label: page.history.rounds, labelAnchor: "center", labelArrow: "none", tickFormat: "d", ticks: Math.min(points.length, 8), interval: points.length < 8 ? 1 : undefined },
    y: { type: page.history.log ? "log" : "linear", label: page.history.label, grid: true, labelArrow: "none", tickFormat: "~g", ticks: 5 },
    marks: [
      Plot.line(points, { x: "round", y: "value", stroke: "var(--accent)", strokeWidth: 2 }),
      Plot.dot(points, { x: "round", y: "value", fill: "var(--accent)", title: (point) => `${page.history.rounds} ${point.round}: ${point.value.toPrecision(6)}`, tip: true }),
    ],
  });
}

// --- Mean memberships of groups

function drawGroups(width) {
  const { group_names: names, means, counts } = page.rows;
  const bars = names.flatMap((name, g) => {
    let sum = 0;
    return components.map((h) => ({ name, h, share: means[g][h], from: sum, to: (sum += means[g][h]), count: counts[g] }));
  });
  const margin = Math.min(0.4 * width, 14 + 6.6 * d3.max(names, (name) => name.length));
  return Plot.plot({
    width, height: 34 + (names.length > 20 ? 16 : 24) * names.length, marginLeft: margin, style: font, ariaLabel: "Mean memberships of groups",
    x: { domain: [0, 1], tickFormat: "%", label: null }, y: { domain: names, label: null, axis: null },
    marks: [
      Plot.barX(bars, {
        y: "name", x1: "from", x2: "to", fill: (bar) => colour(bar.h), insetTop: 1.5, insetBottom: 1.5, tip: { format: { x: false } },
        title: (bar) => `${bar.name} (${bar.count.toLocaleString("en")} rows)\ncomponent ${bar.h + 1}: ${percent(bar.share)}`,
      }),
      Plot.text(names, { y: (name) => name, frameAnchor: "left", textAnchor: "end", dx: -6, lineWidth: margin / 12, textOverflow: "ellipsis-end", title: (name) => name }),
    ],
  });
}
