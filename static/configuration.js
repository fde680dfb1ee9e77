// The configuration page without a round trip: filters the settings while somebody types, and counts what they changed.
(() => {
  const form = document.getElementById("settings-form");
  const filter = document.getElementById("setting-filter");
  const { q, changed } = filter.elements;
  const links = new Map([...document.querySelectorAll(".setting-contents a")].map((link) => [link.hash.slice(1), link]));
  const isEdited = (field) =>
    field.tagName === "SELECT"
      ? field.selectedIndex !== Math.max(0, [...field.options].findIndex((one) => one.defaultSelected))
      : field.value !== field.defaultValue;

  const show = () => {
    const words = q.value.toLowerCase().split(/\s+/);
    let found = 0;
    for (const group of form.querySelectorAll(".setting-group:has(.setting)")) {
      const title = group.querySelector("h2").textContent;
      let inGroup = 0;
      for (const row of group.querySelectorAll(".setting")) {
        const text = `${title} ${row.querySelector(".setting-text").textContent}`.toLowerCase();
        const isChanged = row.matches(".setting-changed, .setting-edited");
        row.hidden = !row.querySelector(".field-wrong") && !(words.every((word) => text.includes(word)) && (isChanged || !changed.checked));
        inGroup += !row.hidden;
      }
      group.hidden = !inGroup;
      if (q.value && inGroup && group.tagName === "DETAILS") group.open = true;
      links.get(group.querySelector(".settings").id).parentElement.hidden = !inGroup;
      found += inGroup;
    }
    document.getElementById("settings-none").hidden = found > 0;
    const query = new URLSearchParams(new FormData(filter));
    if (!q.value) query.delete("q");
    history.replaceState(history.state, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
    form.action = location.pathname + location.search;
  };
  const count = () => {
    for (const row of form.querySelectorAll(".setting")) row.classList.toggle("setting-edited", row.matches(".setting-typed") || isEdited(row.querySelector("input, select")));
    const edited = form.querySelectorAll(".setting-edited").length;
    document.getElementById("setting-count").textContent = edited ? ` (${edited})` : "";
  };
  document.querySelector("[form=setting-filter][type=submit]").hidden = true;
  for (const field of [q, changed]) field.addEventListener("input", show);
  filter.addEventListener("submit", (event) => { event.preventDefault(); show(); });
  form.addEventListener("input", count);
  addEventListener("pageshow", count);
})();
