// The chart of a cluster's page: workers, use and targets over time, and what made the number of workers change.
// The table below the chart says the same without this script.
(() => {
  const box = document.querySelector("[data-samples]");
  if (!box || !window.uPlot) return;
  const PERIOD = 15000;
  // A canvas knows no light-dark(), which is what the property itself holds.
  const colour = (name) => {
    const probe = box.appendChild(document.createElement("i"));
    probe.style.color = `var(${name})`;
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const said = document.createElement("p");
  said.className = "chart-event";
  let plot = null;
  let shown = null;

  const eventLines = (u) => {
    const { ctx } = u;
    const { left, top, width, height } = u.bbox;
    const unit = window.devicePixelRatio || 1;
    ctx.save();
    for (const event of shown.events) {
      const x = Math.round(u.valToPos(event.at, "x", true));
      if (x < left || x > left + width) continue;
      ctx.strokeStyle = ctx.fillStyle = colour("--muted");
      ctx.lineWidth = unit;
      ctx.setLineDash([3 * unit, 3 * unit]);
      ctx.beginPath();
      ctx.moveTo(x, top + 8 * unit);
      ctx.lineTo(x, top + height);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.beginPath();  // a triangle at the top: up for more workers, down for fewer
      const tip = event.grows ? top : top + 8 * unit;
      const base = event.grows ? top + 8 * unit : top;
      ctx.moveTo(x, tip);
      ctx.lineTo(x - 5 * unit, base);
      ctx.lineTo(x + 5 * unit, base);
      ctx.fill();
    }
    ctx.restore();
  };
  const sayNearest = (u) => {
    const { left } = u.cursor;
    if (!(left >= 0)) u.setLegend({ idx: shown.times.length - 1 }, false);  // nobody points: the newest values
    const newest = shown.events.at(-1);
    let nearest = left >= 0 ? null : newest;
    let least = 14;
    if (left >= 0)
      for (const event of shown.events) {
        const distance = Math.abs(u.valToPos(event.at, "x") - left);
        if (distance < least) [nearest, least] = [event, distance];
      }
    const stamp = nearest && new Date(nearest.at * 1000).toISOString().slice(11, 19);
    said.textContent = nearest ? `${left >= 0 ? "" : "Last change, "}${stamp} UTC: ${nearest.words}` : "";
  };

  // An axis with one moment spans years; a minute before it, of which nothing is known, gives it a measure.
  const withStart = (data) => {
    if (data.times.length !== 1) return data;
    const known = ["ready", "wanted", "cpu", "memory"].map((name) => [name, [null, data[name][0]]]);
    return { ...data, ...Object.fromEntries(known), times: [data.times[0] - 60, data.times[0]] };
  };
  const columns = (data) => {
    const level = (target) => data.times.map(() => target || null);
    return [data.times, data.ready, data.wanted, data.cpu, data.memory, level(data.targetCpu), level(data.targetMemory)];
  };
  const options = (data) => {
    const alone = (u) => u.data[1].filter((ready) => ready != null).length < 2; // one sample makes no line
    const stepped = uPlot.paths.stepped({ align: 1 });
    const count = (u, value) => (value == null ? "–" : String(value));
    const share = (u, value) => (value == null ? "–" : `${value} %`);
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const target = (label, name, is) => ({ label, scale: "%", value: share, stroke: colour(name), width: 1, dash: [6, 4], points: { show: false }, show: is > 0 });
    const series = [
      { label: "UTC", value: (u, at) => (at == null ? "–" : new Date(at * 1000).toISOString().slice(11, 19)) },
      { label: "ready", scale: "workers", value: count, stroke: colour("--chart-ready"), width: 2, paths: stepped, points: { show: alone } },
      { label: "wanted", scale: "workers", value: count, stroke: colour("--chart-wanted"), width: 2, dash: [2, 3], paths: stepped, points: { show: alone } },
      { label: "CPU", scale: "%", value: share, stroke: colour("--chart-cpu"), width: 1.5, points: { show: alone } },
      { label: "memory", scale: "%", value: share, stroke: colour("--chart-memory"), width: 1.5, points: { show: alone } },
      target("CPU target", "--chart-cpu", data.targetCpu),
      target("memory target", "--chart-memory", data.targetMemory),
    ];
    return {
      width: Math.max(240, box.clientWidth),
      height: 280,
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      scales: { workers: { range: (u, low, high) => [0, Math.max(2, (high || 0) + 1)] }, "%": { range: (u, low, high) => [0, Math.max(100, high || 0)] } },
      axes: [
        { ...axis, space: 75, values: (u, times, index, space, step) => times.map((at) => new Date(at * 1000).toISOString().slice(...(step < 60 ? [11, 19] : step < 86400 ? [11, 16] : [5, 10]))) },
        { ...axis, scale: "workers", label: "workers", labelSize: 18, size: 42, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] },
        { ...axis, scale: "%", side: 1, grid: { show: false }, size: 60, values: (u, values) => values.map((value) => `${value} %`) },
      ],
      series: series,
      hooks: { draw: [eventLines], setCursor: [sayNearest] },
    };
  };
  const draw = () => {
    if (!shown) return;
    plot?.destroy();
    plot = null;
    if (!shown.times.length) {
      said.textContent = "Nothing measured yet: the first values come some seconds after the first worker.";
      box.replaceChildren(said);
      return;
    }
    box.classList.add("chart-live");
    box.replaceChildren();
    plot = new uPlot(options(shown), columns(shown), box);
    box.append(said);
    sayNearest(plot);
  };
  const update = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(box.dataset.samples, { headers: { Accept: "application/json" } });
      if (!answer.ok) return;
      const had = shown;
      shown = withStart(await answer.json());
      const same = plot && had.targetCpu === shown.targetCpu && had.targetMemory === shown.targetMemory;
      if (!same) draw();
      else {
        plot.setData(columns(shown));
        sayNearest(plot);
      }
    } catch {
      // The page says itself that the connection is lost; the next round tries again.
    }
  };
  update();
  if (box.dataset.final === undefined) setInterval(update, PERIOD);
  document.addEventListener("visibilitychange", update);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new ResizeObserver(() => plot && plot.width !== box.clientWidth && box.clientWidth > 240 && plot.setSize({ width: box.clientWidth, height: 280 })).observe(box);
})();
