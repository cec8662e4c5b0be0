// The reader's framework: asked once, remembered, and what the links to the next page follow. Until
// then they follow PyTorch, which most will use.
//
// tools/pages/two_ways.py puts CoursePages into each page: all pages in their order, as
// { page, title, framework }, framework being null where both ways share a page.
//
// Pages that are read as files carry the answer in their links, too: on a busy machine Chromium 156
// now and then gives a file an empty storage, until it is loaded again.
(() => {
  "use strict";
  const KEY = "d2lmgpu-framework";
  const NAMES = ["PyTorch", "MXNet"]; // the first unless the reader chooses
  const LOST = "This browser keeps nothing for these pages, so you will be asked on each of them.";
  const root = document.documentElement;
  const index = () => CoursePages.findIndex(({ page }) => page === DOCUMENTATION_OPTIONS.pagename);
  const address = ({ page }) => `${root.dataset.content_root}${page}.html`;

  /** What is remembered, null if nothing is or may be. */
  function remembered() {
    try {
      const name = localStorage.getItem(KEY);
      return NAMES.includes(name) ? name : null;
    } catch {
      return null;
    }
  }

  /** Whether the browser has kept it. */
  function remember(name) {
    try {
      localStorage.setItem(KEY, name);
      return true;
    } catch {
      return false;
    }
  }

  /** The question, as often as a page asks it: all of its places show the same answer. */
  class ChooseFramework extends HTMLElement {
    static #made = 0;

    connectedCallback() {
      const name = `framework-${(ChooseFramework.#made += 1)}`;
      const choices = NAMES.map(
        (value) => `<label><input type="radio" name="${name}" value="${value}"><span>${value}</span></label>`,
      );
      this.innerHTML = `<fieldset><legend></legend><div>${choices.join("")}</div></fieldset>
        <p role="status"></p>`;
      this.show();
      this.addEventListener("change", (event) => {
        const kept = remember(event.target.value);
        choose(event.target.value);
        this.querySelector("p").textContent = kept ? "" : LOST;
      });
    }

    show() {
      const chosen = root.dataset.framework;
      const question = chosen ? "Your framework" : "Which framework do you use?";
      this.querySelector("legend").textContent = question;
      for (const input of this.querySelectorAll("input")) input.checked = input.value === chosen;
    }
  }

  function choose(name) {
    root.dataset.framework = name;
    for (const place of document.querySelectorAll("choose-framework")) place.show();
    lead();
    carry();
  }

  /** The links at the page's end: to the nearest page on either side that is not the other way's. */
  function lead() {
    const at = index();
    const chosen = root.dataset.framework ?? NAMES[0];
    const area = document.querySelector(".prev-next-area");
    if (at < 0 || !area) return;
    const mine = ({ framework }) => !framework || framework === chosen;
    aim(area.querySelector(".left-prev"), CoursePages.slice(0, at).findLast(mine));
    aim(area.querySelector(".right-next"), CoursePages.slice(at + 1).find(mine));
  }

  function aim(link, page) {
    if (!link || !page) return;
    link.href = address(page);
    link.querySelector(".prev-next-title").textContent = page.title;
  }

  /** What the link that led here has carried, null if nothing; it is remembered instead. */
  function carried() {
    const url = new URL(location);
    const name = url.searchParams.get("framework");
    if (!NAMES.includes(name)) return null;
    remember(name);
    url.searchParams.delete("framework");
    history.replaceState(history.state, "", url);
    return name;
  }

  /** From one file to the next, the links to pages take the answer along. */
  function carry() {
    if (location.protocol !== "file:" || !root.dataset.framework) return;
    for (const link of document.querySelectorAll(".bd-links a, .prev-next-area a")) {
      const there = new URL(link.href);
      if (there.pathname === location.pathname || there.protocol !== "file:") continue;
      there.searchParams.set("framework", root.dataset.framework);
      link.href = there.href;
    }
  }

  /** What the side bar dims: the pages of a framework, whichever the reader's is. */
  function mark() {
    const ofFrameworks = CoursePages.filter(({ framework }) => framework);
    const of = new Map(
      ofFrameworks.map((page) => [new URL(address(page), location).pathname, page.framework]),
    );
    for (const link of document.querySelectorAll(".bd-links a")) {
      const framework = of.get(new URL(link.href).pathname);
      if (framework) link.dataset.framework = framework;
    }
  }

  function start() {
    mark();
    lead();
    carry();
    const area = document.querySelector(".prev-next-area");
    const matters = CoursePages.slice(Math.max(0, index())).some(({ framework }) => framework);
    if (area && index() >= 0 && matters && !root.dataset.framework) {
      area.before(document.createElement("choose-framework"));
    }
  }

  const framework = carried() ?? remembered();
  if (framework) root.dataset.framework = framework;
  customElements.define("choose-framework", ChooseFramework);
  document.addEventListener("DOMContentLoaded", start);
})();
