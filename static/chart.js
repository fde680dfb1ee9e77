// Every chart. `data-chart` is the address of the values of one or several charts, `data-name` says which of them a box draws; lines, scales,
// dashes and colours come with the values (dashboard/shell/viewmodels/charts.py). The charts of a page share their cursor, which the arrow keys move.
// Where the values have steps instead of times, each chart has steps of its own, and `data-charts` is a box to which charts of new values are added.
// The table beside a chart says the same without this script; "charted" on the body tells it that there is something new.
(() => {
  const boxes = [...document.querySelectorAll("[data-chart]")];
  const grids = [...document.querySelectorAll("[data-charts]")];
  if (!(boxes.length || grids.length) || !window.uPlot) return;

  // A canvas knows no light-dark(), which is what the property itself holds.
  const colour = (name) => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = `var(${name})`;
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const element = (name, css) => Object.assign(document.createElement(name), { className: css });
  const moment = (at, ...part) => new Date(at * 1000).toISOString().slice(...part);
  const { lang } = document.documentElement;
  const written = (value, unit, digits = { maximumFractionDigits: 2 }) => (value == null ? "–" : value.toLocaleString(lang, digits) + unit);
  const brief = (value) => value.toLocaleString(lang, Math.abs(value) < 10000 ? { maximumSignificantDigits: 4 } : { notation: "compact" });
  const exact = { maximumSignificantDigits: 6 };

  // What a line looks like, for the legend: its dashes as well as its colour.
  const sample = (line) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const stroke = svg.appendChild(document.createElementNS(svg.namespaceURI, "line"));
    for (const [name, value] of Object.entries({ class: "chart-line", "aria-hidden": "true" })) svg.setAttribute(name, value);
    for (const [name, value] of Object.entries({
      x1: 0, x2: "100%", y1: "50%", y2: "50%", stroke: colour(line.colour), "stroke-width": line.width, "stroke-dasharray": line.dash.join(" "),
    })) stroke.setAttribute(name, value);
    return svg;
  };

  // An axis with one moment spans years; a minute before it, of which nothing is known, gives it a measure.
  const withStart = (data) => {
    if (data.steps || data.times.length !== 1) return data;
    for (const chart of Object.values(data.charts)) for (const line of Object.values(chart.lines)) line.values.unshift(null);
    return { ...data, times: [data.times[0] - 60, data.times[0]] };
  };

  const charts = [];
  class Chart {
    constructor(box) {
      this.box = box;
      this.event = element("p", "chart-event");
      this.said = element("p", "visually-hidden");
      this.said.setAttribute("aria-live", "polite");
      box.addEventListener("keydown", (event) => this.press(event));
      new ResizeObserver(() => {
        if (this.plot && this.plot.width !== box.clientWidth && box.clientWidth > 160) this.fit();
      }).observe(box);
    }

    show(data) {
      const had = this.data && Object.keys(this.lines).join();
      this.data = data;
      this.lines = data.charts[this.box.dataset.name]?.lines ?? {};
      this.times = data.charts[this.box.dataset.name]?.times ?? data.times;
      this.digits = data.steps ? exact : undefined;
      if (!this.plot || had !== Object.keys(this.lines).join()) return this.draw();
      this.plot.setData(this.columns());
      this.rest(this.plot);
      this.fit();
    }

    // As high as the stylesheet's room leaves it beside the legend, which may take several lines: what is below never moves.
    fit() {
      const { box, plot } = this;
      const width = Math.max(160, box.clientWidth);
      if (plot.width !== width) plot.setSize({ width, height: plot.height });
      // uPlot writes its sizes and the legend in a microtask, after which this one comes.
      queueMicrotask(() => {
        if (plot !== this.plot) return;
        const end = (this.event.isConnected ? this.event : plot.root).getBoundingClientRect().bottom;
        const beside = end - box.getBoundingClientRect().top - plot.root.querySelector(".u-wrap").offsetHeight;
        const height = Math.max(120, Math.floor(parseFloat(getComputedStyle(box).minHeight) - beside));
        if (height !== plot.height) plot.setSize({ width, height });
      });
    }

    columns() {
      return [this.times, ...Object.values(this.lines).map((line) => line.values)];
    }

    draw() {
      if (!this.data) return;
      this.plot?.destroy();
      this.plot = null;
      if (!this.times.length) {
        this.event.textContent = this.box.dataset.empty;
        this.box.replaceChildren(this.event);
        return;
      }
      this.box.replaceChildren();
      this.box.closest(".chart-grid-empty")?.classList.remove("chart-grid-empty");
      this.plot = new uPlot(this.options(), this.columns(), this.box);
      const markers = this.box.querySelectorAll(".u-marker");
      Object.values(this.lines).forEach((line, place) => markers[place + 1]?.replaceWith(sample(line)));
      if (this.data.events) this.box.append(this.event);
      this.box.append(this.said);
      // Focus and keys only where there is something to move through.
      const keys = this.data.steps ? gettext("%(title)s. The arrow keys move through its steps.") : gettext("%(title)s. The arrow keys move through time.");
      const label = interpolate(keys, { title: this.box.dataset.title }, true);
      Object.entries({ tabindex: 0, role: "application", "aria-roledescription": gettext("chart"), "aria-label": label })
        .forEach(([name, value]) => this.box.setAttribute(name, value));
      this.rest(this.plot);
      this.fit();
    }

    options() {
      const { scales } = this.data.charts[this.box.dataset.name];
      // A sample between two gaps makes no line, so it is drawn as a point; over steps there are no gaps, and a line of one value is a point.
      const alone = (u, series) => [...u.data[series].keys()].filter((place) => {
        if (this.data.steps) return u.data[series][place] != null && u.data[series].filter((value) => value != null).length === 1;
        const [before, here, after] = [-1, 0, 1].map((step) => u.data[series][place + step]);
        return here != null && before == null && after == null;
      });
      const stepped = uPlot.paths.stepped({ align: 1 });
      const line = colour("--line");
      const axis = { stroke: colour("--muted"), grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: `12px ${getComputedStyle(this.box).fontFamily}` };
      const times = (u, all, index, space, step) => this.data.steps ? all.map(brief) : all.map((at) => moment(at, ...(step < 60 ? [11, 19] : step < 86400 ? [11, 16] : [5, 10])));
      // As wide as its longest text, so that none is cut; measured once for each drawing, as uPlot asks again until sizes rest.
      const roomy = (least) => (u, values, place, round) => {
        const drawn = u.axes[place];
        if (round > 1) return drawn._size;
        [u.ctx.font] = drawn.font;
        const widest = Math.max(0, ...(values || []).map((text) => u.ctx.measureText(text).width));
        return Math.max(least, Math.ceil(drawn.ticks.size + drawn.gap + widest / devicePixelRatio));
      };
      const yAxis = ([name, scale]) => ({
        ...axis,
        scale: name,
        side: scale.right ? 1 : 3,
        grid: { ...axis.grid, show: !scale.right },
        size: roomy(scale.right ? 56 : 46),
        ...(scale.label && { label: scale.label, labelSize: 18, labelFont: axis.font }),
        ...(scale.whole && { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000] }),
        values: (u, values) => values.map((value) => brief(value) + scale.unit),
      });
      const drawn = (one) => ({
        label: one.label,
        scale: one.scale,
        value: (u, value) => written(value, scales[one.scale].unit, this.digits),
        spanGaps: Boolean(this.data.steps),
        stroke: colour(one.colour),
        width: one.width,
        dash: one.dash.length ? one.dash : undefined,
        fill: one.filled ? colour(one.colour).replace("rgb(", "rgba(").replace(")", ", .14)") : undefined,
        paths: one.stepped ? stepped : undefined,
        points: { show: true, filter: alone },
      });
      return {
        width: Math.max(160, this.box.clientWidth),
        height: 170,
        tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
        cursor: { sync: { key: "page" }, y: false },
        // Without a range of its own the axis is as long as what is known.
        scales: {
          ...(this.data.range && { x: { range: () => this.data.range } }),
          ...(this.data.steps && { x: { time: false, range: (u, low, high) => (low === high ? [low - 1, high + 1] : [low, high]) } }),
          ...Object.fromEntries(Object.entries(scales).map(([name, scale]) => [name, scale.free ? {} : { range: (u, low, high) => [0, Math.max(scale.top, (high || 0) * 1.05)] }])),
        },
        axes: [{ ...axis, space: 75, size: 30, values: times }, ...Object.entries(scales).map(yAxis)],
        series: [{ label: this.data.steps ? gettext("Step") : "UTC", value: (u, at) => (at == null ? "–" : this.when(at)) }, ...Object.values(this.lines).map(drawn)],
        hooks: { draw: [(u) => this.mark(u)], setCursor: [(u) => this.rest(u)] },
      };
    }

    // The events as dashed lines with a triangle at the top: up for more, down for fewer.
    mark({ ctx, bbox: { left, top, width, height }, valToPos }) {
      const unit = window.devicePixelRatio || 1;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = colour("--muted");
      ctx.lineWidth = unit;
      for (const event of this.data.events ?? []) {
        const x = Math.round(valToPos(event.at, "x", true));
        if (x < left || x > left + width) continue;
        ctx.setLineDash([3 * unit, 3 * unit]);
        ctx.beginPath();
        ctx.moveTo(x, top + 8 * unit);
        ctx.lineTo(x, top + height);
        ctx.stroke();
        ctx.setLineDash([]);
        ctx.beginPath();
        const tip = event.grows ? top : top + 8 * unit;
        const base = event.grows ? top + 8 * unit : top;
        ctx.moveTo(x, tip);
        ctx.lineTo(x - 5 * unit, base);
        ctx.lineTo(x + 5 * unit, base);
        ctx.fill();
      }
      ctx.restore();
    }

    // A sample that stands for a day has no time.
    when(at, end = 19) {
      const { times } = this;
      if (this.data.steps) return written(at, "", this.digits);
      return times[1] - times[0] < 86400 ? moment(at, 11, end) : moment(at, 0, 10);
    }

    newest() {
      const { times } = this;
      const known = (place) => Object.values(this.lines).some((line) => line.values[place] != null);
      for (let place = times.length - 1; place > 0; place--) if (known(place)) return place;
      return times.length - 1;
    }

    // The event at the cursor; while nobody points, the newest values and the newest event.
    rest(u) {
      const { left } = u.cursor;
      const isPointed = left >= 0;
      if (!isPointed) u.setLegend({ idx: this.newest() }, false);
      const events = this.data.events ?? [];
      let nearest = isPointed ? null : events.at(-1);
      let least = 14;
      if (isPointed)
        for (const event of events) {
          const distance = Math.abs(u.valToPos(event.at, "x") - left);
          if (distance < least) [nearest, least] = [event, distance];
        }
      const text = isPointed ? gettext("%(time)s UTC: %(event)s") : gettext("Last change, %(time)s UTC: %(event)s");
      this.event.textContent = nearest ? interpolate(text, { time: moment(nearest.at, 11, 19), event: nearest.words }, true) : "";
    }

    press(event) {
      if (!this.plot || event.ctrlKey || event.altKey || event.metaKey) return;
      const last = this.newest();
      const here = this.plot.cursor.left >= 0 ? this.plot.cursor.idx : null;
      const step = event.shiftKey ? 10 : 1;
      const to = {
        ArrowLeft: here == null ? last : Math.max(0, here - step),
        ArrowRight: here == null ? last : Math.min(last, here + step),
        Home: 0,
        End: last,
        Escape: -1,
      }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      for (const { plot } of charts.filter((one) => one.plot && one.box.dataset.chart === this.box.dataset.chart))
        plot.setCursor(to < 0 ? { left: -10, top: -10 } : { left: plot.valToPos(this.times[to], "x"), top: 1 }, true, false);
      this.said.textContent = to < 0 ? "" : this.sentence(to);
    }

    sentence(place) {
      const { scales } = this.data.charts[this.box.dataset.name];
      const said = Object.values(this.lines).map((line) => `${line.label} ${written(line.values[place], scales[line.scale].unit, this.digits)}`);
      const near = this.event.textContent ? `. ${this.event.textContent}` : "";
      const { times } = this;
      const when = this.when(times[place], times[1] - times[0] < 60 ? 19 : 16);
      const text = this.data.steps ? gettext("Step %(when)s: %(values)s") : gettext("%(when)s UTC: %(values)s");
      return interpolate(text, { when, values: said.join(", ") }, true) + near;
    }
  }

  // A box for each chart that the page did not know yet.
  const completed = (grid, data, drawn) => {
    for (const [name, { title }] of Object.entries(data.charts)) {
      if (drawn.some((chart) => chart.box.dataset.name === name)) continue;
      const figure = grid.appendChild(element("figure", "card chart-card"));
      figure.append(Object.assign(element("figcaption", "break"), { textContent: title }));
      const box = figure.appendChild(element("div", "chart"));
      Object.assign(box.dataset, { chart: grid.dataset.charts, name, title });
      const chart = new Chart(box);
      drawn.push(chart);
      charts.push(chart);
    }
  };

  const follow = (address, drawn, grid) => {
    const { period, final } = (grid ?? drawn[0].box).dataset;
    let isFirst = true;
    const update = async () => {
      if (document.hidden) return;
      try {
        const answer = await fetch(address, { headers: { Accept: "application/json" } });
        if (!answer.ok) return;
        const data = withStart(await answer.json());
        if (grid) completed(grid, data, drawn);
        for (const chart of drawn) chart.show(data);
        if (!isFirst) document.body.dispatchEvent(new Event("charted"));
        isFirst = false;
      } catch {
        // The page says itself that the connection is lost; the next round tries again.
      }
    };
    update();
    if (final === undefined) setInterval(update, Number(period) * 1000);
    document.addEventListener("visibilitychange", update);
  };
  charts.push(...boxes.map((box) => new Chart(box)));
  for (const address of new Set([...boxes.map((box) => box.dataset.chart), ...grids.map((grid) => grid.dataset.charts)]))
    follow(address, charts.filter((one) => one.box.dataset.chart === address), grids.find((grid) => grid.dataset.charts === address));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((chart) => chart.draw()));
})();
