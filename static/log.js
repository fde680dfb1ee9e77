// The log viewer: follows, loads earlier lines on scrolling up, and finds text among the loaded lines. Without it the page's links and
// form do the same. The box is a reversed column: its scrollTop is 0 at the end and negative above.
(() => {
  const log = document.getElementById("log");
  const box = log?.querySelector(".log-box");
  if (!box) return;
  const pages = log.querySelector(".log-pages");
  const state = log.querySelector("#log-state");
  const button = log.querySelector(".log-new");
  const MOST = 5000;  // lines; when more are followed, the first ones leave the page
  const NEAR = 24;
  let after = pages.firstElementChild.dataset.after;
  let unseen = 0;
  let failures = 0;

  const written = (number) => number.toLocaleString(document.documentElement.lang);
  const say = (text) => {
    if (state && state.textContent !== text) state.textContent = text;
  };
  const isAtEnd = () => box.scrollTop > -NEAR;
  const count = (page) => page.querySelectorAll(".log-row").length;

  const ask = async (name, cursor) => {
    const answer = await fetch(`${log.dataset.url}&${name}=${encodeURIComponent(cursor)}`);
    if (answer.redirected) location.reload();  // to the login
    const text = await answer.text();
    const found = new DOMParser().parseFromString(text, "text/html").querySelector(".log-page, #log");
    if (answer.status === 403 && found) log.replaceWith(found);
    if (!answer.ok || !found?.matches(".log-page")) throw new Error(answer.status);
    return found;
  };
  const joinDays = () => {
    let day = "";
    for (const mark of pages.querySelectorAll("[data-day]")) {
      if (mark.dataset.day === day) mark.remove();
      day = mark.dataset.day;
    }
  };
  const showBeginning = () => {
    const before = pages.firstElementChild.dataset.before;
    let link = log.querySelector("[data-earlier]");
    if (!before) return link?.remove();
    if (!link) {
      link = Object.assign(document.createElement("a"), { className: "log-between", href: "#log" });
      link.dataset.earlier = "";
      pages.before(link);
    }
    link.textContent = gettext("Earlier lines");
  };

  let isLoading = false;
  const loadEarlier = async () => {
    const before = pages.firstElementChild.dataset.before;
    if (!before || isLoading) return;
    isLoading = true;
    try {
      const page = await ask("before", before);
      const link = log.querySelector("[data-earlier]");
      if (page.dataset.problem) link.textContent = page.dataset.problem;
      else {
        pages.prepend(page);
        joinDays();
        showBeginning();
        markMatches();
      }
    } catch {
      const link = log.querySelector("[data-earlier]");
      if (link) link.textContent = gettext("The server does not answer. Try again");
    }
    isLoading = false;
  };
  log.addEventListener("click", (event) => {
    if (!event.target.closest("[data-earlier]")) return;
    event.preventDefault();
    loadEarlier();
  });

  const showUnseen = () => {
    if (isAtEnd()) unseen = 0;
    button.hidden = unseen === 0;
    button.textContent = interpolate(ngettext("%(count)s new line ↓", "%(count)s new lines ↓", unseen), { count: written(unseen) }, true);
    if (log.hasAttribute("data-following") && !failures)
      say(isAtEnd() ? gettext("Following: new lines appear by themselves.") : gettext("Paused while you read. Scroll to the end to follow."));
  };
  box.addEventListener("scroll", () => {
    showUnseen();
    if (box.scrollHeight - box.clientHeight + box.scrollTop < 10 * NEAR && !isAtEnd()) loadEarlier();
  });
  button.addEventListener("click", () => {
    box.scrollTop = 0;
    box.focus({ preventScroll: true });
    showUnseen();
  });

  const take = (page) => {
    const stays = !isAtEnd();
    const height = box.scrollHeight;
    const lines = count(page);
    if (lines) {
      log.querySelector(".empty")?.remove();
      pages.append(page);
      joinDays();
    }
    if (stays) {
      unseen += lines;
      box.scrollTop -= box.scrollHeight - height;
    } else {
      while (count(pages) > MOST && pages.children.length > 1) pages.firstElementChild.remove();
      showBeginning();
    }
    if (lines) markMatches();
  };
  let timer = 0;
  let isAsking = false;
  const follow = async () => {
    if (isAsking) return; // another answer would bring the same lines again
    clearTimeout(timer);
    if (!document.hidden) {
      isAsking = true;
      try {
        const page = await ask("after", after);
        after = page.dataset.after || after;
        failures = page.dataset.problem ? failures + 1 : 0;
        if (!page.dataset.problem) take(page);
        if (!("live" in page.dataset)) {
          log.removeAttribute("data-following");
          return say(page.dataset.problem || gettext("The program has ended."));
        }
        if (failures) say(interpolate(gettext("%(problem)s Trying again."), { problem: page.dataset.problem }, true));
      } catch (error) {
        failures += 1;
        if (!log.isConnected) return;
        if (error.message === "404") {
          log.removeAttribute("data-following");
          return say(gettext("The log is gone, or no longer yours to see."));
        }
        say(gettext("The server does not answer. Trying again."));
      } finally {
        isAsking = false;
      }
      showUnseen();
    }
    timer = setTimeout(follow, 1000 * Number(log.dataset.seconds) * Math.min(8, 2 ** failures));
  };
  if (state && "live" in pages.firstElementChild.dataset) {
    log.setAttribute("data-following", "");
    showUnseen();
    timer = setTimeout(follow, 1000 * Number(log.dataset.seconds));
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && log.hasAttribute("data-following")) follow();
    });
  }

  const field = log.querySelector("#log-q");
  const found = log.querySelector("#log-found");
  let matches = [];
  let current = -1;
  const markMatches = () => {
    const term = field.value.trim().toLowerCase();
    const here = matches[current];
    const ranges = [];
    matches = [];
    if (term)
      for (const text of pages.querySelectorAll("code")) {
        if (!text.textContent.toLowerCase().includes(term)) continue;
        matches.push(text);
        const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
        for (let node = walker.nextNode(); node; node = walker.nextNode())
          for (let at = node.data.toLowerCase().indexOf(term); at >= 0; at = node.data.toLowerCase().indexOf(term, at + term.length)) {
            const range = new Range();
            range.setStart(node, at);
            range.setEnd(node, Math.min(at + term.length, node.length));
            ranges.push(range);
          }
      }
    if (window.Highlight) CSS.highlights.set("log-match", new Highlight(...ranges));
    current = matches.indexOf(here);
    found.hidden = !term;
    sayFound();
  };
  const sayFound = () => {
    const lines = count(pages);
    // Other languages than English have plurals here.
    const words = current < 0
      ? ngettext("%(found)s of %(count)s lines", "%(found)s of %(count)s lines", lines)
      : ngettext("%(place)s of %(found)s of %(count)s lines", "%(place)s of %(found)s of %(count)s lines", lines);
    const numbers = { place: current + 1, found: written(matches.length), count: written(lines) };
    found.firstElementChild.textContent = interpolate(words, numbers, true);
  };
  const step = (by) => {
    if (!matches.length) return;
    matches[current]?.parentElement.classList.remove("log-current");
    current = current < 0 ? matches.length - 1 : (current + by + matches.length) % matches.length;
    matches[current].parentElement.classList.add("log-current");
    matches[current].scrollIntoView({ block: "nearest" });
    sayFound();
  };
  let typing = 0;
  field.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(markMatches, 150);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !matches.length) return;
    event.preventDefault();
    step(event.shiftKey ? 1 : -1);  // the newest first
  });
  found.addEventListener("click", (event) => {
    const by = event.target.closest("[data-step]")?.dataset.step;
    if (by) step(Number(by));
  });
  if (field.value) markMatches();

  // A browser that is busy while it loads the page forgets the fragment of its address, and charts above move what it had found.
  addEventListener("load", () => {
    if (location.hash === "#finding") log.querySelector("#finding")?.scrollIntoView({ block: "nearest" });
  });

  log.querySelector("form").addEventListener("change", (event) => {
    if (event.target.matches("select")) event.target.form.requestSubmit();
  });
  for (const name of ["log-wrap", "log-time"]) {
    const choice = log.querySelector(`#${name}`);
    try {
      choice.checked = localStorage.getItem(name) !== "no";
    } catch { /* the browser keeps nothing */ }
    choice.addEventListener("change", () => {
      try {
        localStorage.setItem(name, choice.checked ? "yes" : "no");
      } catch { /* likewise */ }
    });
  }
})();
