// The page of search results, where Sphinx's own script would mislead: it quotes a page's menus and
// the first of the words, puts the exercises and the API, which have all words, above the page on
// the subject, and marks the words on whatever page is opened next.
document.addEventListener("DOMContentLoaded", () => {
  "use strict";
  if (typeof Search === "undefined") return;
  const MARKED = "sphinx_highlight_terms"; // what sphinx_highlight.js marks, once
  const NO_PROSE = ".cell_input, nav, script, style, svg, .headerlink, .twin, .prediction";
  const LISTS = ["reference/exercises", "reference/api"]; // behind all others
  const AROUND = 240; // characters of a quotation
  let asked = "";

  Scorer.score = ([page, , , , score]) =>
    LISTS.some((list) => page.endsWith(list)) ? score - 100 : score;

  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const article = page.querySelector("article.bd-article");
    for (const element of article?.querySelectorAll(NO_PROSE) ?? []) element.remove();
    const part = anchor ? article?.querySelector(anchor) : null;
    return (part ?? article)?.textContent.replace(/\s+/g, " ").trim() ?? "";
  };

  Search.makeSearchSummary = (html, keywords, anchor) => {
    const text = Search.htmlToText(html, anchor);
    const place = (words) => text.toLowerCase().indexOf(words.toLowerCase());
    const first = [asked, ...keywords].map(place).find((at) => at >= 0);
    if (!text) return null;
    const start = Math.max(0, (first ?? 0) - AROUND / 3);
    const from = start ? text.indexOf(" ", start) + 1 : 0;
    const quoted = document.createElement("p");
    quoted.className = "context";
    quoted.textContent =
      `${from ? "… " : ""}${text.slice(from, from + AROUND)}${from + AROUND < text.length ? " …" : ""}`;
    return quoted;
  };

  const search = Search.performSearch;
  Search.performSearch = (query) => {
    asked = query.trim();
    search(query);
    const words = localStorage.getItem(MARKED);
    localStorage.removeItem(MARKED);
    document.getElementById("search-results").addEventListener("click", ({ target }) => {
      if (words && target.closest("a")) localStorage.setItem(MARKED, words);
    });
  };
});
