// The runs by name: click one to hide or show it, rename it, read its value under the pointer.
"use strict";

class LabRuns {
  static SHOWN = 6; // runs at once: as many colours as can be told apart
  static OFF = "muted"; // the colour of a run that is not shown

  /** `changed()` hears that runs are hidden, shown or have another name. */
  constructor(root, source, changed) {
    this.root = root;
    this.source = source;
    this.changed = changed;
    this.hidden = new Set(); // by the reader
    this.order = []; // ids of the others, in the order in which they were shown
    this.colours = new Map(); // of those that are shown
    this.names = {}; // given here and on their way to the kernel
    root.ariaLabel = "Runs: press one to hide or show it";
    root.addEventListener("click", (event) => this.#click(event));
    root.addEventListener("keydown", (event) => this.#key(event));
    root.addEventListener("focusout", (event) => this.#leave(event));
  }

  /** The runs as the charts want them: with number, colour and name. */
  take(runs) {
    const sent = this.source.get("hidden");
    if (sent !== this.sent) this.hidden = new Set(sent); // else what was pressed here still holds
    this.sent = sent;
    this.#choose(runs.map(({ id }) => id).filter((id) => !this.hidden.has(id)));
    this.runs = runs.map((run, index) => ({
      ...run,
      name: this.names[run.id] ?? run.name,
      tag: String(index + 1),
      colour: this.colours.get(run.id) ?? LabRuns.OFF,
    }));
    const shape = JSON.stringify(this.runs.map(({ curves, where, memory, ...look }) => look));
    if (shape !== this.shape && !this.root.querySelector("input")) {
      this.shape = shape;
      this.#draw();
    }
  }

  /** Of the runs that may be shown those that were last shown; each has a colour of its own. */
  #choose(ids) {
    this.order = this.order.filter((id) => ids.includes(id));
    this.order.push(...ids.filter((id) => !this.order.includes(id)));
    const shown = this.order.slice(-LabRuns.SHOWN);
    const kept = [...this.colours].filter(([id]) => shown.includes(id));
    this.colours = new Map(kept);
    const used = new Set(this.colours.values());
    const free = Array.from({ length: LabRuns.SHOWN }, (_, colour) => String(colour))
      .filter((colour) => !used.has(colour));
    for (const id of shown) if (!this.colours.has(id)) this.colours.set(id, free.shift());
  }

  get shown() {
    return this.runs.filter(({ id }) => this.colours.has(id));
  }

  find(id) {
    return this.runs.find((run) => run.id === id);
  }

  /** Say the values of the runs at the pointer, {name: [x, y]}; without it nothing. */
  point(values) {
    for (const item of this.root.children) {
      const [x, y] = values?.[item.dataset.id] ?? [null, null];
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

  #item({ id, name, tag, colour, status, timing, unsteady, diverged }) {
    const marks = [
      timing === "simulated" ? "simulated" : "",
      unsteady ? "unsteady" : "",
      diverged ? "diverged" : "",
      ["running", "stopped", "failed"].includes(status) ? status : "",
    ].filter(Boolean).map((word) => `<small>${word}</small>`);
    const words = LabWords.html(name);
    const pressed = `aria-pressed="${this.colours.has(id)}"`;
    return `<li data-id="${id}" style="--lab-run: var(--lab-${colour})">
      <button type="button" class="lab-toggle" ${pressed}>
        <i class="lab-mark lab-mark-line"></i>${tag}. ${words} ${marks.join(" ")}</button>
      <button type="button" class="lab-rename" aria-label="Rename ${words}">✎</button>
      <output></output></li>`;
  }

  #click({ target }) {
    const id = Number(target.closest("li")?.dataset.id);
    if (target.closest(".lab-toggle")) {
      const hidden = this.colours.has(id);
      this.hidden[hidden ? "add" : "delete"](id);
      this.order = this.order.filter((run) => run !== id); // shown again, it is the last of them
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
