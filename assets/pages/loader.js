// Adds to a page what its places need: figures that move, explorers, the panel that trains, the lab
// of recorded runs. Any other page loads nothing but this. It does not wait until a figure is seen:
// on paper all of them stand, and nobody has scrolled to them.
(() => {
  "use strict";
  const root = new URL("..", document.currentScript.src);
  const TRAINING = [
    "training", "steady", "runs", "words", "settings", "chart", "table", "race", "panel",
  ];

  const CHART = ["words.js", "chart.js", "svg.js"]; // of the lab
  const MOVING = ["race", "moves", "buckets", "pipeline", "split", "context", "swimlanes"];

  // In this order: what stands first is used by those after it.
  const PLACES = {
    ".explore": () => ["address.js"],
    ".explore:not(.moving)": () => ["explorer.js"],
    ".moving": () => ["motion.js"],
    ...Object.fromEntries(MOVING.map((kind) => [`.moving.${kind}`, () => [`${kind}.js`]])),
    ".moving.layouts": () => ["layoutmodel.js", "layouts.js"],
    ".memory-explorer": () => ["memory.js"],
    ".training": () => [
      "training/panel.css", ...CHART, ...TRAINING.map((name) => `training/${name}.js`),
    ],
    ".lab-recorded, .breaking-recorded": (place) => place.dataset.scripts.split(" "),
  };

  function add(tag, properties) {
    document.head.append(Object.assign(document.createElement(tag), properties));
  }

  const added = new Set(); // two places may need the same

  function start() {
    for (const [selector, names] of Object.entries(PLACES)) {
      const place = document.querySelector(selector);
      for (const name of place ? names(place) : []) {
        if (added.has(name)) continue;
        added.add(name);
        const href = new URL(name, root);
        if (name.endsWith(".css")) add("link", { rel: "stylesheet", href });
        else add("script", { src: href, async: false }); // one after the other
      }
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
