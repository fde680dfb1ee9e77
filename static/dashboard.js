// What a server cannot do: times go on by themselves, questions come as dialogs, and a lost connection is said in words.

// The texts of all our scripts come in the page's language with the script before this one, and are English when that could not be loaded.
globalThis.gettext ??= (text) => text;
globalThis.ngettext ??= (one, many, count) => (count === 1 ? one : many);
globalThis.interpolate ??= (text, values) => text.replace(/%\((\w+)\)s/g, (whole, name) => String(values[name]));

(() => {
  const units = [
    [86400, gettext("%(count)s d")],
    [3600, gettext("%(count)s h")],
    [60, gettext("%(count)s min")],
    [1, gettext("%(count)s s")],
  ];
  const duration = (seconds) => {
    const [size, text] = units.find(([size]) => seconds >= size) ?? units.at(-1);
    return interpolate(text, { count: Math.max(0, Math.floor(seconds / size)) }, true);
  };
  const setText = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };
  const tick = () => {
    const now = Date.now();
    for (const element of document.querySelectorAll("time[data-age]"))
      setText(element, duration((now - Date.parse(element.dateTime)) / 1000));
    for (const element of document.querySelectorAll("time[data-until]")) {
      const seconds = (Date.parse(element.dateTime) - now) / 1000;
      setText(element, seconds >= 1 ? interpolate(gettext("in %(duration)s"), { duration: duration(seconds) }, true) : gettext("now"));
    }
  };
  setInterval(tick, 1000);

  // What a table cuts off is told whole: to a mouse by a tooltip; beside the row that the keyboard comes to, all that is cut in it;
  // and beside a cell that is tapped. It is in the page anyway, so screen readers are not told twice.
  const partOf = (cell) => cell.querySelector("summary") ?? cell;
  const isCut = (cell) => partOf(cell).scrollWidth > partOf(cell).clientWidth && !cell.querySelector("details[open]");
  const wholeOf = (cell) => partOf(cell).innerText.replace(/\s+/g, " ").trim();
  const whole = document.createElement("dl");
  whole.className = "cell-whole";
  whole.popover = "manual";
  whole.setAttribute("aria-hidden", "true");
  let toldOf = null;
  const hideWhole = () => {
    toldOf = null;
    if (whole.isConnected && whole.matches(":popover-open")) whole.hidePopover();
  };
  const placeWhole = () => {
    const { left, top, bottom } = toldOf.getBoundingClientRect(), { offsetWidth: width, offsetHeight: height } = whole;
    if (bottom < 0 || top > innerHeight) return hideWhole();
    whole.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
    whole.style.top = `${bottom + height + 8 <= innerHeight ? bottom + 2 : Math.max(8, top - height - 2)}px`;
  };
  const showWhole = (cells, beside) => {
    const heads = [...beside.closest("table").querySelectorAll("thead th")];
    whole.replaceChildren(...cells.map((cell) => {
      const part = document.createElement("div"), name = document.createElement("dt"), text = document.createElement("dd");
      name.textContent = heads[cell.cellIndex]?.innerText.trim() ?? "";
      text.textContent = wholeOf(cell);
      part.append(name, text);
      return part;
    }));
    document.body.append(whole);
    if (!whole.matches(":popover-open")) whole.showPopover();
    toldOf = beside;
    placeWhole();
  };
  const cellAt = (event) => event.target.closest?.(".table-fixed tbody th, .table-fixed tbody td, .table-fixed thead th");
  document.addEventListener("pointerover", (event) => {
    const cell = event.pointerType !== "touch" && cellAt(event);
    if (cell && !partOf(cell).title && isCut(cell)) partOf(cell).title = wholeOf(cell);
  });
  document.addEventListener("focusin", (event) => {
    const row = event.target.matches?.(":focus-visible") && event.target.closest(".table-fixed tbody tr");
    if (row && row === toldOf) return;
    const cut = row ? [...row.cells].filter(isCut) : [];
    if (cut.length) showWhole(cut, row);
    else hideWhole();
  });
  document.addEventListener("focusout", (event) => { if (!event.relatedTarget) hideWhole(); });
  document.addEventListener("pointerup", (event) => {
    const cell = event.pointerType === "touch" && !event.target.closest?.("a, button, summary, input, label") && cellAt(event);
    if (cell && cell !== toldOf && isCut(cell)) showWhole([cell], cell);
    else hideWhole();
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideWhole(); });
  document.addEventListener("scroll", () => { if (toldOf) placeWhole(); }, { capture: true, passive: true });
  document.addEventListener("htmx:after:swap", () => { if (toldOf && !toldOf.isConnected) hideWhole(); });

  document.addEventListener("htmx:after:swap", tick);
  document.addEventListener("DOMContentLoaded", tick);

  // The server does not know where the reader's clocks are.
  document.addEventListener("DOMContentLoaded", () => {
    const field = document.querySelector("input[data-browser-zone]");
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (field && zone) field.value = zone;
  });

  // A page that only asks "are you sure?" comes as a dialog.
  const dialog = document.createElement("dialog");
  dialog.className = "dialog";
  const ask = async (url) => {
    const answer = await fetch(url);
    const asked = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main .narrow");
    if (!answer.ok || answer.redirected || !asked) throw new Error("no question");
    dialog.replaceChildren(document.adoptNode(asked));
    const title = dialog.querySelector("h1");
    title.id = "dialog-title";
    dialog.setAttribute("aria-labelledby", title.id);
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector("[data-close]")?.focus();
  };
  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const link = event.target.closest?.("a[data-dialog]");
    if (link) {
      event.preventDefault();
      ask(link.href).catch(() => { location.href = link.href; });
    } else if (event.target === dialog || (dialog.open && event.target.closest?.("[data-close]"))) {
      event.preventDefault();
      dialog.close();
    }
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches?.("#selected, form[data-dialog]")) return; // its boxes are called "id", and so is `target.id`
    event.preventDefault();
    const action = event.submitter?.getAttribute("formaction") ?? event.target.action;
    const url = `${action}?${new URLSearchParams(new FormData(event.target))}`;
    ask(url).catch(() => { location.href = url; });
  });
  // A choice that changes more than a table brings its page.
  document.addEventListener("change", (event) => {
    if (event.target.matches?.("select[data-submits]")) event.target.form.submit();
  });
  const count = () => {
    const shown = document.querySelector("[data-selected]");
    if (!shown) return;
    const boxes = [...document.querySelectorAll(".select")];
    const chosen = boxes.filter((box) => box.checked).length;
    setText(shown, String(chosen));
    for (const all of document.querySelectorAll("input[data-select-all]")) {
      all.checked = chosen > 0 && chosen === boxes.length;
      all.indeterminate = chosen > 0 && chosen < boxes.length;
    }
  };
  document.addEventListener("click", (event) => {
    const all = event.target.closest?.("[data-select-all]");
    if (!all) return;
    for (const box of document.querySelectorAll(".select")) box.checked = all.checked ?? true;
    count();
  });
  document.addEventListener("reset", () => setTimeout(count));
  document.addEventListener("change", count);
  document.addEventListener("htmx:after:swap", count);

  // A notebook is made for one framework, so a cluster that is attached to it starts with that one.
  document.addEventListener("change", (event) => {
    const made = event.target.dataset?.frameworks?.trim().split(" ") ?? [""];
    const chosen = document.querySelector("[name=framework]:checked");
    const fitting = made[0] && !made.includes(chosen?.value) && document.querySelector(`[name=framework][value="${made[0]}"]`);
    if (fitting) fitting.click();
  });

  // A refusal that arrives while somebody types marks its field as one of a whole page does.
  const markRefused = () => {
    for (const slot of document.querySelectorAll(".cluster-form .field-error[id]")) {
      const field = document.getElementById(slot.id.replace(/_error$/, ""));
      if (slot.textContent) field?.setAttribute("aria-invalid", "true");
      else field?.removeAttribute("aria-invalid");
    }
  };
  document.addEventListener("htmx:after:swap", markRefused);
  // The card's button chooses a tier where it is, without a new page.
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button[name=choose]");
    const [field, id] = button?.value.split(":") ?? [];
    const choice = id && document.querySelector(`[name="${field}"][value="${CSS.escape(id)}"], select[name="${field}"]`);
    if (!choice) return;
    event.preventDefault();
    if (choice.matches("select")) {
      choice.value = id;
      choice.dispatchEvent(new Event("input", { bubbles: true }));
    } else choice.click();
    choice.focus();
  });
  // The link itself opens the filled form; where the page may write to the clipboard, it is copied instead.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-copy-link]");
    if (!link || !navigator.clipboard || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const said = link.querySelector(".fit-link-copy");
    navigator.clipboard.writeText(link.href).then(
      () => setText(said, gettext("Link copied")),
      () => { location.href = link.href; },
    );
  });
  const sayOld = () => {
    const summary = document.getElementById("fit-summary");
    if (summary) setText(summary, gettext("The server does not answer; what follows is from before."));
  };
  // A question that a newer one replaced is no failure of the server.
  document.addEventListener("htmx:error", (event) => {
    if (event.detail?.error?.name !== "AbortError") sayOld();
  });
  document.addEventListener("htmx:before:response", (event) => {
    if (!event.target.closest?.("#launch-form") || event.detail.ctx.response.status < 400) return;
    event.preventDefault();
    sayOld();
  });

  // Whoever is not logged in any more gets the login page as a page, not inside the one that asked for a part of itself.
  document.addEventListener("htmx:before:response", (event) => {
    if (!event.detail.ctx.response.raw.redirected) return;
    event.preventDefault();
    location.reload();
  });

  let lost = null;
  const sayLost = () => {
    const element = document.getElementById("freshness");
    if (!element || !document.querySelector("#live[hx-ws\\:connect]")) return;
    lost ??= new Date();
    element.className = "freshness freshness-behind";
    const time = lost.toISOString().slice(11, 19);
    const said = gettext("The server does not answer; trying again. What you see is from %(time)s UTC.");
    element.innerHTML = '<span class="freshness-headline" role="status"></span> <span class="freshness-detail"></span>';
    element.firstElementChild.textContent = gettext("Connection lost");
    element.lastElementChild.textContent = interpolate(said, { time }, true);
  };
  document.addEventListener("htmx:ws:close", sayLost);
  document.addEventListener("htmx:ws:error", sayLost);
  document.addEventListener("htmx:before:ws:message", () => { lost = null; });
  document.addEventListener("input", (event) => {
    const shown = event.target.type === "range" && document.querySelector(`output[for="${event.target.id}"]`);
    if (shown) shown.textContent = Number(event.target.value).toLocaleString(document.documentElement.lang);
  });
})();
