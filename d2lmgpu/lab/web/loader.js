// Adds the lab to a page that shows records; any other page loads nothing but this.
(() => {
  "use strict";
  const here = new URL(".", document.currentScript.src);

  function start() {
    const place = document.querySelector(".lab-recorded");
    for (const name of place?.dataset.scripts.split(" ") ?? []) {
      const src = new URL(name, here);
      document.head.append(Object.assign(document.createElement("script"), { src, async: false }));
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
