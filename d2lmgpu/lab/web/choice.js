// One of several: radio buttons drawn as one bar. Keys, names and states are the browser's own.
"use strict";

class LabChoice {
  /** `chosen(value)` hears of the reader's choice; values are strings. */
  constructor(place, name, legend, chosen) {
    this.root = document.createElement("fieldset");
    this.root.className = `lab-choice lab-${name}`;
    this.root.innerHTML = `<legend>${legend}</legend><div></div>`;
    this.name = name;
    this.root.addEventListener("change", (event) => {
      if (event.target.type === "radio") chosen(event.target.value);
    });
    place.append(this.root);
  }

  /** Show `options`, pairs of value and HTML; a choice that is none of them leaves all off. */
  show(options, value) {
    const shape = JSON.stringify(options);
    if (shape !== this.shape) {
      this.shape = shape;
      const radios = options.map((option) => this.#radio(...option));
      this.root.querySelector("div").innerHTML = radios.join("");
    }
    for (const radio of this.root.querySelectorAll("input[type=radio]")) {
      radio.checked = radio.value === value;
    }
  }

  #radio(value, html) {
    const attributes = `type="radio" name="${this.name}" value="${LabWords.html(value)}"`;
    return `<label><input ${attributes}><span>${html}</span></label>`;
  }
}
