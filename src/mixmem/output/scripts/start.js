// Everything, once, from top to bottom.
offerTables();
startProfiles();
startMemberships();
if (page.rows.groups) figure("groups", drawGroups, {
  legend: true,
  data: () => [[page.rows.by, "rows", ...components.map((h) => `component_${h + 1}`)], ...page.rows.group_names.map((name, g) => [name, page.rows.counts[g], ...page.rows.means[g]])],
});
if (k > 1) figure("histogram", drawHistogram, { data: () => [["from", "to", "share"], ...page.histogram.tops.map((share, b, all) => [b / all.length, (b + 1) / all.length, share])] });
if (page.alpha0) figure("alpha0", drawAlpha0, { data: () => [["alpha0", "mean_log_likelihood"], ...page.alpha0.tried] });
if (page.history) figure("history", drawHistory, { data: () => [["round", "value"], ...page.history.values.map((value, i) => [i + page.history.first, value])] });
performance.mark("ready");
document.documentElement.dataset.ready = "yes";
