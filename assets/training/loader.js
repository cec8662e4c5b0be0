// Adds the training panel to a page that has a place for it; any other page loads nothing but this.
(() => {
  "use strict";
  const here = new URL(".", document.currentScript.src);

  function add(tag, properties) {
    document.head.append(Object.assign(document.createElement(tag), properties));
  }

  function start() {
    if (!document.querySelector(".training")) return;
    add("link", { rel: "stylesheet", href: new URL("panel.css", here) });
    for (const name of ["training", "runs", "words", "settings", "chart", "table", "panel"]) {
      add("script", { src: new URL(`${name}.js`, here), async: false }); // one after the other
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
