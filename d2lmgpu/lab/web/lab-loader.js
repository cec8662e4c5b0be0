// Adds the lab to a page that shows records; any other page loads nothing but this.
(() => {
  "use strict";
  const here = new URL(".", document.currentScript.src);

  function add(tag, properties) {
    document.head.append(Object.assign(document.createElement(tag), properties));
  }

  function start() {
    const place = document.querySelector(".lab-recorded");
    for (const name of place?.dataset.scripts.split(" ") ?? []) {
      const href = new URL(name, here);
      if (name.endsWith(".css")) add("link", { rel: "stylesheet", href });
      else add("script", { src: href, async: false }); // one after the other
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
