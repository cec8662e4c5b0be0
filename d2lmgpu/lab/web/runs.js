// The runs by name: click one to hide or show it, rename it, read its value under the pointer.
"use strict";

class LabRuns {
  static SHOWN = 6; // colours that can be told apart; the number at a curve's end tells the rest

  /** `changed()` hears that runs are hidden, shown or have another name. */
  constructor(root, source, changed) {
    this.root = root;
    this.source = source;
    this.changed = changed;
    this.hidden = new Set();
    this.names = {}; // given here and on their way to the kernel
    root.ariaLabel = "Runs: press one to hide or show it";
    root.addEventListener("click", (event) => this.#click(event));
    root.addEventListener("keydown", (event) => this.#key(event));
    root.addEventListener("focusout", (event) => this.#leave(event));
  }

  /** The runs as the charts want them: with number, colour and name. */
  take(runs) {
    const told = this.source.get("hidden");
    if (told !== this.told) this.hidden = new Set(told); // else what was pressed here still holds
    this.told = told;
    this.runs = runs.map((run, index) => ({
      ...run,
      name: this.names[run.id] ?? run.name,
      tag: String(index + 1),
      colour: String(index % LabRuns.SHOWN),
    }));
    const shape = JSON.stringify(this.runs.map(({ id, name, status, timing }) => [
      id, name, status, timing, this.hidden.has(id),
    ]));
    if (shape !== this.shape && !this.root.querySelector("input")) {
      this.shape = shape;
      this.#draw();
    }
  }

  get shown() {
    return this.runs.filter((run) => !this.hidden.has(run.id));
  }

  find(id) {
    return this.runs.find((run) => run.id === id);
  }

  /** Say the values of the runs at the pointer, {name: [x, y]}; without it nothing. */
  point(values) {
    for (const item of this.root.children) {
      const [x, y] = values?.[this.find(Number(item.dataset.id))?.name] ?? [null, null];
      item.querySelector("output").textContent =
        x === null ? "" : `${LabWords.number(y)} at ${LabWords.number(x)}`;
    }
  }

  #draw() {
    const from = document.activeElement?.closest?.(".lab-runs li");
    const back = from && this.root.contains(from)
      ? [from.dataset.id, document.activeElement.className] : null;
    this.root.innerHTML = this.runs.map((run) => this.#item(run)).join("");
    if (back) this.#button(...back)?.focus({ preventScroll: true });
  }

  #button(id, name) {
    return this.root.querySelector(`li[data-id="${id}"] .${name}`);
  }

  #item({ id, name, tag, colour, status, timing }) {
    const marks = [
      timing === "simulated" ? "simulated" : "",
      ["running", "stopped", "failed"].includes(status) ? status : "",
    ].filter(Boolean).map((word) => `<small>${word}</small>`);
    const words = LabWords.html(name);
    const pressed = `aria-pressed="${!this.hidden.has(id)}"`;
    return `<li data-id="${id}" style="--lab-run: var(--lab-${colour})">
      <button type="button" class="lab-toggle" ${pressed}>
        <i class="lab-mark lab-mark-line"></i>${tag}. ${words} ${marks.join(" ")}</button>
      <button type="button" class="lab-rename" aria-label="Rename ${words}">✎</button>
      <output></output></li>`;
  }

  #click({ target }) {
    const id = Number(target.closest("li")?.dataset.id);
    if (target.closest(".lab-toggle")) {
      const hidden = !this.hidden.has(id);
      this.hidden[hidden ? "add" : "delete"](id);
      this.source.send({ do: "hide", id, hidden });
      this.changed();
    } else if (target.closest(".lab-rename")) {
      this.#edit(id);
    }
  }

  #edit(id) {
    const toggle = this.#button(id, "lab-toggle");
    const field = document.createElement("input");
    const { name } = this.find(id);
    Object.assign(field, { value: name, ariaLabel: "New name", maxLength: 80 });
    field.className = "lab-name";
    toggle.replaceWith(field);
    field.select();
  }

  #key(event) {
    if (event.target.tagName !== "INPUT") return;
    if (event.key === "Escape") event.target.value = "";
    if (["Enter", "Escape"].includes(event.key)) {
      event.preventDefault();
      this.#rename(event.target);
    }
  }

  #leave({ target }) {
    if (target.tagName === "INPUT") this.#rename(target);
  }

  #rename(field) {
    if (field.done) return; // its removal takes the focus from it, too
    field.done = true;
    const id = Number(field.closest("li").dataset.id);
    const name = field.value.trim();
    if (name && name !== this.find(id).name) {
      this.names[id] = name;
      this.source.send({ do: "rename", id, name });
    }
    this.take(this.runs);
    this.#draw();
    this.#button(id, "lab-rename")?.focus({ preventScroll: true });
    this.changed();
  }
}
