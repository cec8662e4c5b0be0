// Charts that answer: the values at a point, by the pointer or the arrow keys, and series on and off.
//
// d2lmgpu/figures/chart.py puts data-chart on each picture, which is complete without this script:
// [{ name, points: [[left, right, top, where, value], …] }, …] in parts of a thousand; the parts of
// a series carry data-series, its text in the legend data-legend, with its number.
(() => {
  "use strict";
  const charts = new Set();

  class Chart {
    constructor(svg) {
      this.svg = svg;
      this.series = JSON.parse(svg.dataset.chart).map((series) => ({ ...series, on: true }));
      this.spans = this.series.some(({ points }) => points.some(([left, right]) => left < right));
      this.box = document.createElement("span");
      this.box.className = "chart";
      svg.before(this.box);
      this.box.append(svg);
      this.reader = this.#add("input", { type: "range", min: 0, value: 0, className: "chart-reader" });
      this.reader.ariaLabel = `Values: ${svg.getAttribute("aria-label").split(". ")[0]}`;
      this.line = this.#add("span", { className: "chart-line", hidden: true });
      this.tip = this.#add("span", { className: "chart-tip", hidden: true });
      for (const text of svg.querySelectorAll("[data-legend]")) this.#button(text);
      this.#order();
      this.#listen();
    }

    #add(tag, properties) {
      const element = Object.assign(document.createElement(tag), properties);
      this.box.append(element);
      return element;
    }

    /** A series is switched by its name in the legend, over which a button lies. */
    #button(text) {
      const series = this.series[text.dataset.legend];
      const button = this.#add("button", { type: "button", className: "chart-series" });
      const whole = this.svg.getBoundingClientRect(), part = text.getBoundingClientRect();
      const sample = 30 * whole.width / this.svg.viewBox.baseVal.width; // the line before the name
      const percent = (length, of) => `${100 * length / of}%`;
      Object.assign(button.style, {
        left: percent(part.left - whole.left - sample, whole.width),
        top: percent(part.top - whole.top, whole.height),
        width: percent(part.width + sample, whole.width),
        height: percent(part.height, whole.height),
      });
      button.ariaLabel = series.name;
      button.ariaPressed = true;
      button.addEventListener("click", () => {
        series.on = !series.on;
        button.ariaPressed = series.on;
        const parts = this.svg.querySelectorAll(`[data-series="${text.dataset.legend}"]`);
        for (const part of parts) part.style.display = series.on ? "" : "none";
        text.style.opacity = series.on ? "" : 0.5;
        text.style.textDecoration = series.on ? "" : "line-through";
        this.#order();
      });
    }

    /** The places where the series that are on can be read, from left to right. */
    #order() {
      const places = new Map();
      for (const { name, points, on } of this.series) {
        for (const [left, right, top, where, value] of on ? points : []) {
          if (!places.has(where)) places.set(where, { where, left, right, top, values: [] });
          places.get(where).values.push(`${name} ${value}`.trim());
        }
      }
      this.places = [...places.values()].sort((a, b) => a.left - b.left || a.top - b.top);
      this.reader.max = Math.max(0, this.places.length - 1);
      this.reader.disabled = this.places.length === 0;
      this.#say();
      this.hide();
    }

    #listen() {
      this.box.addEventListener("pointermove", (event) => this.#point(event));
      this.box.addEventListener("pointerdown", (event) => this.#point(event));
      this.box.addEventListener("pointerleave", () => this.hide());
      this.reader.addEventListener("input", () => this.#show());
      this.reader.addEventListener("focus", () => this.#show());
      this.reader.addEventListener("blur", () => this.hide());
    }

    #point({ clientX, clientY, target }) {
      if (!this.places.length || target.closest(".chart-series")) return this.hide();
      const { left, top, width, height } = this.svg.getBoundingClientRect();
      const x = 1000 * (clientX - left) / width, y = 1000 * (clientY - top) / height;
      // Among spans in lanes height counts, too; of curves all are read at one place.
      const far = (place) => Math.hypot(
        Math.max(place.left - x, x - place.right, 0) * width,
        this.spans ? (place.top - y) * height : 0,
      );
      const nearest = this.places.reduce((a, b) => (far(b) < far(a) ? b : a));
      this.reader.value = this.places.indexOf(nearest);
      this.#show();
    }

    #say() {
      const place = this.places[this.reader.value];
      this.reader.ariaValueText = place ? `${place.where}: ${place.values.join(", ")}` : "";
      return place;
    }

    #show() {
      const place = this.#say();
      if (!place) return;
      const middle = (place.left + place.right) / 20;
      this.line.style.left = `${middle}%`;
      this.line.hidden = this.tip.hidden = false;
      const after = middle < 50; // on the side where the picture has more room
      Object.assign(this.tip.style, {
        left: after ? `calc(${middle}% + 0.5rem)` : "auto",
        right: after ? "auto" : `calc(${100 - middle}% + 0.5rem)`,
        maxWidth: `calc(${Math.max(middle, 100 - middle)}% - 0.75rem)`,
      });
      this.tip.replaceChildren(...[place.where, ...place.values].map((text) =>
        Object.assign(document.createElement("span"), { textContent: text })));
    }

    hide() {
      this.line.hidden = this.tip.hidden = true;
    }
  }

  function start() {
    for (const svg of document.querySelectorAll("article svg[data-chart]")) {
      if (!svg.closest(".chart")) charts.add(new Chart(svg));
    }
  }

  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") for (const chart of charts) chart.hide();
  });
  document.addEventListener("DOMContentLoaded", () => {
    start();
    const answers = new MutationObserver(start); // an explorer's next answer may be another chart
    for (const answer of document.querySelectorAll(".explore-answer")) {
      answers.observe(answer, { childList: true });
    }
  });
})();
