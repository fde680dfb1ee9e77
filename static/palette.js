// The command palette and the keyboard shortcuts. Without this script the palette is a page with a search form.
(() => {
  const palette = document.getElementById("palette");
  const shortcuts = document.getElementById("shortcuts");
  const input = document.getElementById("palette-input");
  const list = document.getElementById("palette-list");
  const sentence = document.getElementById("palette-sentence");
  const singleKeys = document.getElementById("single-keys");
  const TYPING_MS = 80;
  const SEQUENCE_MS = 1500;

  // --- The palette: the server finds, and renders the options ---
  let asked = 0;
  let loading = Promise.resolve();
  const options = () => [...list.querySelectorAll("[role=option]")];
  const chosen = () => list.querySelector("[aria-selected=true]");
  const choose = (option) => {
    chosen()?.removeAttribute("aria-selected");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-expanded", String(Boolean(option)));
  };
  const load = async (after = 0) => {
    const number = ++asked;
    await new Promise((resume) => setTimeout(resume, after));
    if (number !== asked) return;
    let html = "<div></div>";
    try {
      const answer = await fetch(`${palette.dataset.url}?${new URLSearchParams({ options: "1", q: input.value })}`);
      if (answer.redirected) location.reload(); // to the login page: the session has ended
      if (answer.ok && !answer.redirected) html = await answer.text();
    } catch {
      // The sentence says it.
    }
    if (number !== asked) return;
    list.innerHTML = html;
    list.scrollTop = 0;
    sentence.textContent = list.firstElementChild.dataset.sentence ?? gettext("The server does not answer. Type again to retry.");
    choose(options()[0]);
  };
  const open = () => {
    shortcuts.close();
    if (palette.open) return;
    input.value = "";
    palette.showModal();
    loading = load();
  };
  input.addEventListener("input", () => { loading = load(TYPING_MS); });
  input.addEventListener("keydown", async (event) => {
    if (event.isComposing) return;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      const all = options();
      choose(all[(all.indexOf(chosen()) + by + all.length) % all.length]);
    } else if (event.key === "Enter") {
      event.preventDefault();
      await loading; // what was typed last, also when Enter comes before its answer
      chosen()?.click();
    }
  });

  // A question, and a program in another tab, come in place of the palette.
  list.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-dialog], [formaction]")) palette.close();
  });

  // --- The list of shortcuts ---
  const stored = "single-keys";
  try {
    singleKeys.checked = localStorage.getItem(stored) !== "off";
  } catch { /* the browser keeps nothing */ }
  singleKeys.addEventListener("change", () => {
    try {
      localStorage.setItem(stored, singleKeys.checked ? "on" : "off");
    } catch { /* likewise */ }
  });
  const openShortcuts = () => {
    palette.close();
    shortcuts.showModal();
  };
  for (const dialog of [palette, shortcuts])
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); }); // beside it
  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest?.("[data-palette]")) {
      event.preventDefault();
      open();
    } else if (event.target.closest?.("[data-shortcuts]")) openShortcuts();
  });

  // --- Keys ---
  const step = (by) => {
    const rows = [...document.querySelectorAll("main tbody tr")].filter((row) => row.querySelector("a[href]"));
    const at = rows.findIndex((row) => row.contains(document.activeElement));
    rows[at + by]?.querySelector("a[href]").focus();
  };
  let sequence = 0; // until when a key follows "g"
  const single = {
    "/": open,
    "?": openShortcuts,
    g: () => { sequence = Date.now() + SEQUENCE_MS; },
    j: () => step(1),
    k: () => step(-1),
  };
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      if (palette.open) palette.close();
      else open();
      return;
    }
    if (!singleKeys.checked || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    // The field of a dialog that has just closed has the focus until the page is drawn again.
    const field = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (palette.open || shortcuts.open || (field && !field.closest("dialog:not([open])"))) return;
    const place = Date.now() < sequence && shortcuts.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
    sequence = 0;
    const act = place ? () => place.click() : single[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
})();
