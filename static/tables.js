// Live tables: a row that says something new lights up briefly, and no row moves, comes or goes beneath a pointer or the keyboard's focus.
//
// Contents are always up to date. While somebody is inside a table's body, its rows keep their places, and the order that the server wants
// is kept in `truth`, a copy of the body that is not on the page: it is as large as the page of rows, however long that lasts.
(() => {
  const QUIET = 15_000; // ms without a movement or a key; after them somebody has only left the pointer there
  const QUIET_AFTER_TOUCH = 2_000; // a finger does not hover
  const MOST_LIT = 6, LIGHT_EVERY = 2_000; // so many rows at once, and then one in so many ms: a busy table stays calm
  const CLOCK_LIKE = /\b\d+\s?(?:s|min|h|d|seconds?|minutes?|hours?|days?|%)(?![\p{L}\d])|\b\d\d:\d\d(?::\d\d)?\b/gu;
  const stillness = matchMedia("(prefers-reduced-motion: reduce)");

  const held = new Map(); // by the body's id: {truth, moved}
  const news = new WeakMap(); // of a message: the ids of the rows that it changes
  let inside = null, active = 0, quiet = QUIET, timer = 0;
  let allowance = MOST_LIT, counted = 0;

  const bodyOf = (element) => element?.closest?.("tbody[id]") ?? null;
  const rowIn = (body, id) => [...body.children].find((row) => row.id === id);
  const order = (body) => [...body.children].map((row) => row.id);
  const isHeld = (body) =>
    (body === inside || body.querySelector(":focus-visible") !== null) && performance.now() - active < quiet;

  // --- What lights up: the status of a row and its sentence, which have its workers too, but not what only counts on.
  const said = (row) => [...row.querySelectorAll(".l2, .status")].map((cell) => {
    let text = cell.textContent;
    for (const time of cell.querySelectorAll("time")) text = text.replace(time.textContent, "");
    return text.replace(CLOCK_LIKE, "").replace(/\s+/g, " ").trim();
  }).join("\n");
  const newsOf = (tasks) => {
    const ids = new Set();
    for (const { target, fragment, swapSpec } of tasks) {
      if (!bodyOf(target)) continue;
      for (const row of fragment.children) {
        const old = document.getElementById(row.id);
        if (old ? said(old) !== said(row) : swapSpec.style !== "innerMorph") ids.add(row.id);
      }
    }
    return ids;
  };
  const light = (ids) => {
    const now = performance.now();
    allowance = Math.min(MOST_LIT, allowance + (now - counted) / LIGHT_EVERY);
    counted = now;
    if (stillness.matches || ids.size > allowance) return; // a part of what changed at once would be misleading
    for (const id of ids) {
      const row = document.getElementById(id);
      if (!row) continue;
      allowance -= 1;
      row.animate([{ offset: 0, backgroundColor: "var(--accent-soft)" }], { id: "news", duration: 1600, easing: "ease-out" });
    }
  };

  // --- What waits.
  const line = document.createElement("p");
  line.className = "rows-wait";
  line.setAttribute("role", "status");
  document.addEventListener("DOMContentLoaded", () => (document.getElementById("corner") ?? document.body).append(line));
  const say = () => {
    let came = 0, gone = 0, moved = 0;
    for (const [id, { truth, moved: names }] of held) {
      const shown = new Set(order(document.getElementById(id))), wanted = new Set(order(truth));
      came += wanted.difference(shown).size;
      gone += shown.difference(wanted).size;
      moved += wanted.intersection(shown).intersection(names).size;
    }
    // Other languages than English have plurals here.
    const counts = [
      [came, ngettext("%(count)s new", "%(count)s new", came)],
      [gone, ngettext("%(count)s gone", "%(count)s gone", gone)],
      [moved, ngettext("%(count)s moved", "%(count)s moved", moved)],
    ].filter(([count]) => count);
    if (!counts.length) return line.replaceChildren();
    if (!line.firstChild) {
      const numbers = document.createElement("strong");
      numbers.setAttribute("aria-hidden", "true"); // read out once, not with each number
      line.replaceChildren(numbers, ` ${gettext("Rows keep their places until you leave the table.")}`);
    }
    line.firstChild.textContent = `${counts.map(([count, text]) => interpolate(text, { count }, true)).join(", ")}.`;
  };

  const release = (id) => {
    const body = document.getElementById(id), { truth } = held.get(id);
    held.delete(id);
    if (!body) return;
    const shown = new Set(order(body));
    htmx.swap({ sourceElement: body, target: body, swap: "innerMorph", text: truth.innerHTML, transition: false });
    light(new Set(order(truth)).difference(shown));
  };
  const settle = () => {
    for (const id of [...held.keys()]) {
      const body = document.getElementById(id);
      if (!body || !isHeld(body)) release(id);
    }
    say();
    if (held.size) timer ||= setInterval(settle, 1000);
    else timer = clearInterval(timer);
  };

  const partsOf = (text) => {
    const box = document.createElement("template");
    box.innerHTML = text.replace(/<(\/?)hx-partial/g, "<$1template");
    return [...box.content.children].map((part) => ({
      id: /\[id="(.*)"\]/.exec(part.getAttribute("hx-target"))?.[1],
      style: part.getAttribute("hx-swap"),
      rows: [...part.content.children],
    }));
  };
  const isAbout = (part, body) => part.id === body.id || Boolean(rowIn(held.get(body.id)?.truth ?? body, part.id));
  const change = (truth, moved, { id, style, rows }) => {
    const target = rowIn(truth, id);
    if (style === "innerMorph") {
      const before = order(truth);
      truth.replaceChildren(...rows);
      order(truth).forEach((name, place) => { if (before[place] !== name) moved.add(name); });
    } else if (style === "afterbegin") truth.prepend(...rows);
    else if (style === "afterend") target?.after(...rows);
    else if (style === "delete") target?.remove();
    else target?.replaceWith(...rows);
    if (style === "afterbegin" || style === "afterend") for (const row of rows) moved.add(row.id);
  };
  // Does to the truth what htmx would do to the page, and leaves htmx the new contents of the rows that are on the page.
  const hold = (body, parts, { ctx, tasks }) => {
    const mine = parts.filter((part) => isAbout(part, body));
    if (!held.has(body.id)) {
      if (mine.every((part) => part.style === "outerMorph")) return;
      held.set(body.id, { truth: body.cloneNode(true), moved: new Set() });
    }
    const { truth, moved } = held.get(body.id);
    tasks.splice(0, tasks.length, ...tasks.filter((task) => bodyOf(task.target) !== body));
    for (const part of mine) {
      const copies = part.rows.map((row) => row.cloneNode(true));
      change(truth, moved, part);
      if (part.style === "delete") rowIn(body, part.id)?.classList.add("row-gone");
      for (const copy of copies) {
        const target = rowIn(body, copy.id);
        if (!target) continue;
        const fragment = document.createDocumentFragment();
        fragment.append(copy);
        tasks.push({ type: "partial", fragment, target, swapSpec: { style: "outerMorph" }, sourceElement: ctx.sourceElement });
      }
    }
    if (order(truth).join("\n") === order(body).join("\n")) held.delete(body.id);
  };

  document.addEventListener("htmx:before:swap", (event) => {
    const { ctx, tasks } = event.detail;
    if (ctx.sourceElement?.id !== "live") {
      // Another page's contents, which bring their own rows.
      for (const id of [...held.keys()]) {
        if (tasks.some(({ target }) => target.contains?.(document.getElementById(id)))) held.delete(id);
      }
      return settle();
    }
    let parts;
    for (const body of document.querySelectorAll("tbody[id]")) {
      if (held.has(body.id) || isHeld(body)) hold(body, parts ??= partsOf(ctx.text), event.detail);
    }
    const ids = newsOf(tasks);
    if (ids.size) news.set(ctx, ids);
  });
  document.addEventListener("htmx:after:swap", (event) => {
    const ids = news.get(event.detail.ctx);
    if (ids) light(ids);
    if (held.size || timer) settle();
  });

  // --- Who is inside.
  let x = 0, y = 0;
  const stir = (patience) => { active = performance.now(); quiet = patience; };
  // What changes above a table moves it, and a browser then says that the pointer is over something else.
  const stands = (event) => event.screenX === x && event.screenY === y;
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch" || stands(event)) return;
    const body = bodyOf(event.target);
    if (body && body !== inside) stir(QUIET);
    inside = body;
    if (held.size) settle();
  });
  document.addEventListener("pointerout", (event) => {
    if (event.relatedTarget || event.pointerType === "touch") return; // or the pointer has left the window
    inside = null;
    if (held.size) settle();
  });
  document.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch" || stands(event)) return;
    [x, y] = [event.screenX, event.screenY];
    if (inside) stir(QUIET);
  });
  document.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch") inside = bodyOf(event.target);
    if (inside) stir(event.pointerType === "touch" ? QUIET_AFTER_TOUCH : QUIET);
  });
  for (const name of ["focusin", "keydown"]) {
    document.addEventListener(name, (event) => {
      if (bodyOf(event.target)) stir(QUIET);
      if (held.size) settle();
    });
  }
  document.addEventListener("focusout", () => { if (held.size) setTimeout(settle); });
})();
