// Figures as SVG and PNG, tables as CSV.
function save(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${page.stem}-${name}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

function csv(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return new Blob([rows.map((row) => row.map(cell).join(",")).join("\n") + "\n"], { type: "text/csv" });
}

// A drawing that stands alone: light colours, no hover marks, and the components' colours explained.
function standalone(svg, legend) {
  const copy = svg.cloneNode(true);
  for (const mark of copy.querySelectorAll('[aria-label="tip"], .brush')) mark.remove();
  const [width, height] = [Number(svg.getAttribute("width")), Number(svg.getAttribute("height"))];
  const above = legend ? 26 : 0;
  const style = "color:#1c2126;background:#fff;--paper:#fff;--ink:#1c2126;--soft:#59636e;--accent:#0072B2;--line:#d6dbe0;";
  copy.setAttribute("style", `${style}--plot-background:#fff;font-family:system-ui,sans-serif`);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("viewBox", `0 ${-above} ${width} ${height + above}`);
  copy.setAttribute("height", height + above);
  const drawn = d3.select(copy);
  drawn.insert("rect", ":first-child").attr("y", -above).attr("width", width).attr("height", height + above).attr("fill", "#fff");
  if (legend) {
    const step = Math.min(46, (width - 8) / k);
    for (const h of components) {
      drawn.append("rect").attr("x", 4 + h * step).attr("y", -19).attr("width", 10).attr("height", 10).attr("fill", colour(h));
      drawn.append("text").attr("x", 17 + h * step).attr("y", -10).attr("font-size", 11).attr("fill", "#1c2126").text(h + 1);
    }
  }
  return { text: new XMLSerializer().serializeToString(copy), width, height: height + above };
}

function saveSvg(name, svg, legend) {
  save(`${name}.svg`, new Blob([standalone(svg, legend).text], { type: "image/svg+xml" }));
}

function savePng(name, svg, legend) {
  const drawn = standalone(svg, legend);
  const picture = new Image();
  picture.onload = () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * drawn.width, 2 * drawn.height];
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(`${name}.png`, blob), "image/png");
  };
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawn.text)}`;
}

function button(text, title, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.title = title;
  made.addEventListener("click", act);
  return made;
}

// Every table of the page gets a button for its cells.
function offerTables() {
  for (const table of document.querySelectorAll("table[data-name]")) {
    const tools = document.createElement("div");
    tools.className = "tools";
    const rows = () => [...table.rows].map((row) => [...row.cells].map((cell) => cell.dataset.value ?? cell.textContent.trim().replace(/\s+/g, " ")));
    tools.append(button("CSV", `Download this table as ${table.dataset.name}.csv`, () => save(`${table.dataset.name}.csv`, csv(rows()))));
    (table.closest(".scroll") ?? table).before(tools);
  }
}
