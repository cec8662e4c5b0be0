// A number to set: a field for the exact value and, where `steps` are given, a slider over them.
"use strict";

class LabNumber {
  /** `set(value)` hears of each number that the reader has given; null for a field left empty. */
  constructor(place, settings, set) {
    const { name, label, steps = null, whole = true, empty = null } = settings;
    Object.assign(this, { label, steps, whole, empty, set });
    this.root = document.createElement("div");
    this.root.className = `lab-number lab-${name}`;
    this.root.innerHTML = `
      <label><span>${label}</span>
        <input type="number" step="${whole ? 1 : "any"}" min="0" placeholder="${empty ?? ""}">
      </label>
      ${steps ? `<input type="range" min="0" max="${steps.length - 1}" aria-label="${label}">` : ""}
      <p class="lab-wrong" role="alert"></p>`;
    [this.field, this.slider] = this.root.querySelectorAll("input");
    this.field.addEventListener("input", () => { this.typing = true; });
    this.field.addEventListener("change", () => this.#typed());
    this.slider?.addEventListener("input", () => this.#moved());
    place.append(this.root);
  }

  /** Show the value that holds, and what is `wrong` with it; one that the reader types stays. */
  show(value, wrong = "") {
    this.value = value;
    if (this.typing) return;
    this.field.value = value ?? "";
    this.#say(wrong);
    if (!this.slider || !(value > 0)) return;
    const far = this.steps.map((step) => Math.abs(Math.log(step / value)));
    this.slider.value = far.indexOf(Math.min(...far));
    this.slider.ariaValueText = String(value);
  }

  #typed() {
    const { value, validity } = this.field;
    const number = value === "" ? null : Number(value);
    const allowed = !validity.badInput && (number === null ? this.empty !== null : true);
    if (!allowed || (this.whole && !Number.isInteger(number ?? 0))) {
      this.#say(`${this.label}: give a ${this.whole ? "whole " : ""}number.`);
      return;
    }
    this.typing = false;
    this.#say("");
    const given = this.empty !== null && number === 0 ? null : number;
    if (given !== this.value) this.#give(given);
    else this.show(given);
  }

  #moved() {
    const step = this.steps[Number(this.slider.value)];
    this.typing = false;
    this.field.value = step;
    this.slider.ariaValueText = String(step);
    this.#say("");
    if (step !== this.value) this.#give(step);
  }

  #give(number) {
    this.value = number;
    this.set(number);
  }

  #say(wrong) {
    this.root.querySelector(".lab-wrong").textContent = wrong;
    this.field.ariaInvalid = wrong ? "true" : null;
  }
}
