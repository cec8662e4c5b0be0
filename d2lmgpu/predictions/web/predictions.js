// Predict first: a field whose number is locked, what happened beside it, and a table of all.
//
// One source for two lives. In a live notebook widget.py makes it a module, and the kernel keeps
// what is locked. In a built page it is a plain script, and the reader's browser keeps it. What an
// entry holds says entry.py.
"use strict";

// Numbers, words and pictures of entries.
class PredictionParts {
  static words({ unit, predicted, happened, unsteady, remark }) {
    const { quantity, number, errors } = PredictionParts;
    const sentences = predicted ? [`You predicted ${quantity(predicted.value, unit, true)}.`] : [];
    if (happened) {
      const source = happened.source[0].toUpperCase() + happened.source.slice(1);
      sentences.push(`${source}: ${quantity(happened.value, unit)}.`);
    }
    if (unsteady) {
      sentences.push(`It was unsteady: ${unsteady}. It judges no prediction.`);
    } else if (predicted && happened) {
      const { error, percent } = errors(predicted, happened);
      const share = percent === null ? "" : ` (${number(Math.abs(percent))} %)`;
      const direction = error > 0 ? "high" : "low";
      const judgement = error ? `${number(Math.abs(error))}${share} too ${direction}` : "right";
      sentences.push(`Your prediction is ${judgement}.`);
      if (predicted.shown) sentences.push("It was locked after the outcome had been shown.");
    } else if (happened) {
      sentences.push("No prediction was made before.");
    }
    return [...sentences, remark].filter(Boolean).join(" ");
  }

  static picture({ low, high, predicted, happened, unsteady }) {
    const { number } = PredictionParts;
    const values = [predicted?.value ?? low, happened.value, low, high];
    const [from, to] = [Math.min(...values), Math.max(...values)];
    const at = (value) => 4 + (92 * (value - from)) / (to - from);
    const anchor = (x) => (x < 20 ? "start" : x > 80 ? "end" : "middle");
    const draw = (tag, attributes, text = "") => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
      element.textContent = text;
      return element;
    };
    const label = (value, y, text, name = "") => draw(
      "text", { x: `${at(value)}%`, y, "text-anchor": anchor(at(value)), class: name }, text);
    const line = (start, end, name) => draw(
      "line", { x1: `${at(start)}%`, x2: `${at(end)}%`, y1: 40, y2: 40, class: name });
    const size = { width: "100%", height: 88 };
    const svg = draw("svg", { ...size, role: "img", class: "prediction-picture" });
    svg.append(line(from, to, "prediction-axis"));
    for (const end of [from, to]) svg.append(label(end, 84, number(end), "prediction-end"));
    const labels = [`${happened.source} ${number(happened.value)}`];
    if (predicted) {
      labels.unshift(`predicted ${number(predicted.value)}`);
      const x = `${at(predicted.value)}%`;
      if (!unsteady) svg.append(line(predicted.value, happened.value, "prediction-gap"));
      svg.append(
        draw("line", { x1: x, x2: x, y1: 24, y2: 50, class: "prediction-guess" }),
        label(predicted.value, 16, labels[0]),
      );
    }
    const unseen = ["measured", "counted"].includes(happened.source) ? "" : " prediction-unseen";
    svg.append(
      draw("circle", {
        cx: `${at(happened.value)}%`, cy: 40, r: 6, class: `prediction-outcome${unseen}`,
      }),
      label(happened.value, 64, labels.at(-1)),
    );
    svg.setAttribute("aria-label", `From ${number(from)} to ${number(to)}: ${labels.join(", ")}`);
    return svg;
  }

  // Above 0 where the prediction was too high; an outcome of 0 has no percentage.
  static errors(predicted, happened) {
    const error = predicted.value - happened.value;
    const percent = happened.value ? (100 * error) / Math.abs(happened.value) : null;
    return { error, percent };
  }

  // Three digits, or all of those before the point, thousands with commas: as style.py writes it.
  static number(value) {
    if (Math.abs(value) >= 99.95) return Math.round(value).toLocaleString("en-US");
    return String(Number(value.toPrecision(3)));
  }

  static quantity(value, unit, exact = false) {
    return `${exact ? value : PredictionParts.number(value)} ${unit ?? ""}`.trim();
  }

  // The reader's own time, as 2026-01-31 09:30.
  static time({ time }) {
    return new Date(time).toLocaleString("sv").slice(0, 16);
  }

  static make(tag, properties, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }
}

// The field in which the reader writes a number.
class PredictionForm {
  static AMBIGUOUS = /,\d{3}$/; // 1,500 is 1500 to some and 1.5 to others

  static make({ question, unit, low, high }, onLock) {
    const { make } = PredictionParts;
    const id = `prediction-${Math.random().toString(36).slice(2)}`;
    // As text: a field for numbers hides a decimal comma from its script.
    const input = make("input", { type: "text", inputMode: "decimal", id, autocomplete: "off" });
    const button = make("button", { type: "button" }, "Lock");
    const message = make("p", { className: "prediction-error", id: `${id}-message` });
    message.setAttribute("role", "alert");
    input.setAttribute("aria-describedby", `${id}-unit ${message.id}`);
    const form = make(
      "div", { className: "prediction-form" },
      make("label", { htmlFor: id, className: "prediction-question" }, question),
      make("div", { className: "prediction-line" },
        input, make("span", { id: `${id}-unit` }, unit), button),
      message,
    );
    const lock = () => {
      if (input.readOnly) return; // it is on its way
      const value = PredictionForm.parse(input.value);
      const allowed = low <= value && value <= high;
      input.setAttribute("aria-invalid", !allowed);
      if (allowed) {
        input.readOnly = true;
        button.setAttribute("aria-disabled", true); // disabled, it would lose the keyboard's place
        message.textContent =
          "Waiting for the kernel. If it was restarted, run this cell again.";
        onLock(value);
      } else {
        const ambiguous = PredictionForm.AMBIGUOUS.test(input.value.trim());
        const advice = ambiguous ? " Write 1500 without a comma, and 1.5 with a point." : "";
        message.textContent = `Write a number from ${low} to ${high}.${advice}`;
        input.focus();
      }
    };
    button.addEventListener("click", lock);
    // No form: JupyterLab keeps the Enter key from submitting one.
    input.addEventListener("keydown", (event) => event.key === "Enter" && lock());
    return form;
  }

  // NaN where it is no number, or could be two.
  static parse(text) {
    const plain = text.trim().replace("\u2212", "-");
    const ambiguous = PredictionForm.AMBIGUOUS.test(plain);
    const point = ambiguous ? plain : plain.replace(/^([^.,]*),([^.,]*)$/, "$1.$2");
    return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(point) ? Number(point) : NaN;
  }
}

// All predictions with their errors, which can be saved.
class PredictionTable {
  static HEAD = ["Question", "Predicted", "Happened", "Error", "Error in %", "Locked", "Remark"];

  static make(entries) {
    const { make } = PredictionParts;
    if (!entries.length) return [make("p", {}, "You have not predicted anything yet.")];
    const rows = entries.map(PredictionTable.#cells);
    const width = rows.some((row) => row.at(-1)) ? rows[0].length : rows[0].length - 1;
    const line = (cells, tag) =>
      make("tr", {}, ...cells.slice(0, width).map((cell) => make(tag, {}, cell)));
    const box = make("div", { className: "prediction-table", tabIndex: 0, role: "region" },
      make("table", {},
        make("caption", {}, "All your predictions, and what happened"),
        make("thead", {}, line(PredictionTable.HEAD, "th")),
        make("tbody", {}, ...rows.map((cells) => line(cells, "td")))));
    box.setAttribute("aria-label", "Your predictions");
    const button = make("button", { type: "button" }, "Download as CSV");
    button.addEventListener("click", () => PredictionTable.#save(entries));
    return [box, button];
  }

  static #cells(entry) {
    const { number, quantity, errors, time } = PredictionParts;
    const { name, question, unit, predicted, happened, remark } = entry;
    const { error, percent } = predicted && happened ? errors(predicted, happened) : {};
    return [
      question || name,
      predicted ? quantity(predicted.value, unit, true) : "",
      happened ? `${quantity(happened.value, unit)}, ${happened.source}` : "",
      error === undefined ? "" : number(error),
      (percent ?? null) === null ? "" : number(percent),
      predicted ? time(predicted) : "",
      [predicted?.shown ? "outcome was known" : "", remark].filter(Boolean).join(" "),
    ];
  }

  // The columns are those of Row in entry.py.
  static #save(entries) {
    const quoted = (cell) => `"${String(cell ?? "").replaceAll('"', '""')}"`;
    const rows = entries.map(({ name, question, unit, predicted, happened, remark }) => {
      const both = predicted && happened;
      const { error, percent } = both ? PredictionParts.errors(predicted, happened) : {};
      return {
        name,
        question,
        unit,
        predicted: predicted?.value,
        happened: happened?.value,
        source: happened?.source,
        error,
        percent,
        locked: predicted?.time,
        after_outcome: predicted?.shown,
        remark,
      };
    });
    const lines = [Object.keys(rows[0]), ...rows.map(Object.values)];
    const text = lines.map((cells) => `${cells.map(quoted).join(",")}\n`).join("");
    const href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    PredictionParts.make("a", { href, download: "my-predictions.csv" }).click();
    URL.revokeObjectURL(href);
  }
}

// The question with a field, or the number that is locked. `onLock(value)` is called once, with a
// number from `low` to `high`; `onTakeBack` and `onShow` are what a button below each of the two
// does, null for no button. Called again, it draws again.
function predictionField(element, entry, { onLock, onTakeBack = null, onShow = null }) {
  const { question, unit, predicted, remark } = entry;
  const { make, quantity, time } = PredictionParts;
  element.classList.add("prediction");
  element.dataset.lmSuppressShortcuts = ""; // JupyterLab takes no key that is pressed in here
  const focused = element.contains(document.activeElement);
  const children = [make("p", { className: "prediction-remark" }, remark)];
  const button = (text, onclick) => make("button", { type: "button", onclick }, text);
  const buttons = [
    onShow && button(predicted ? "Show what happened" : "Show it without guessing", onShow),
    predicted && onTakeBack && button("Take it back", onTakeBack),
  ].filter(Boolean);
  if (buttons.length) {
    children.unshift(make("div", { className: "prediction-line" }, ...buttons));
  }
  if (predicted) {
    const number = quantity(predicted.value, unit, true);
    const text = `Your prediction: ${number}, locked ${time(predicted)}.`;
    children.unshift(make("p", { className: "prediction-locked", tabIndex: -1 }, text));
  }
  if (predicted || remark) {
    children.unshift(make("p", { className: "prediction-question" }, question));
  } else {
    children.unshift(PredictionForm.make(entry, onLock));
  }
  element.replaceChildren(...children);
  // The keyboard stays where it was.
  if (focused) element.querySelector(".prediction-locked, input")?.focus();
}

// What happened beside what was predicted: on one axis, and in words.
function predictionOutcome(element, entry) {
  const { make, picture, words } = PredictionParts;
  element.classList.add("prediction");
  const text = make("p", { className: "prediction-words" }, words(entry));
  text.setAttribute("role", "status");
  element.replaceChildren(...(entry.happened ? [picture(entry)] : []), text);
}

function predictionTable(element, entries) {
  element.classList.add("prediction");
  element.replaceChildren(...PredictionTable.make(entries));
}

// What anywidget calls for each output; the kernel keeps what is locked and answers with an entry.
function predictionWidget({ model, el }) {
  const onLock = (value) => model.send({ do: "lock", value });
  const draw = () => {
    const entry = model.get("entry");
    const onTakeBack = entry.final ? null : () => model.send({ do: "take_back" });
    if (entry.part === "table") predictionTable(el, entry.entries);
    else if (entry.part === "outcome") predictionOutcome(el, entry);
    else predictionField(el, entry, { onLock, onTakeBack });
  };
  model.on("change:entry", draw);
  draw();
  return () => model.off("change:entry", draw);
}

// What the reader's browser keeps: { predicted, happened } of each question, as JSON.
class PredictionStore {
  static KEY = "d2lmgpu-prediction:";
  static UNSAVED = "This browser keeps nothing for this page, as in a private window: what you " +
    "lock is locked until you leave the page.";

  #unsaved = new Map(); // by name: the text that the browser did not keep

  // What is known of the question: { predicted, happened, remark }.
  read(name) {
    let text = this.#unsaved.get(name) ?? null;
    const remark = text ? PredictionStore.UNSAVED : "";
    const key = PredictionStore.KEY + name;
    try {
      text ??= localStorage.getItem(key);
    } catch { /* no storage: nothing was kept */ }
    if (text === null) return { predicted: null, happened: null, remark };
    try {
      const { predicted, happened = null } = JSON.parse(text);
      if (Number.isFinite(predicted.value)) return { predicted, happened, remark };
    } catch { /* the remark says it */ }
    const damaged =
      `What this browser keeps as ${key} is damaged: remove it, and the question is open again.`;
    return { predicted: null, happened: null, remark: damaged };
  }

  readAll() {
    const names = new Set(this.#unsaved.keys());
    try {
      for (const key of Object.keys(localStorage)) {
        if (key.startsWith(PredictionStore.KEY)) names.add(key.slice(PredictionStore.KEY.length));
      }
    } catch { /* no storage */ }
    return [...names].sort().map((name) => {
      const known = this.read(name);
      return { name, question: known.predicted?.question, unit: known.predicted?.unit, ...known };
    });
  }

  // Another tab may have locked a number meanwhile: that one stays.
  lock({ name, question, unit }, value, shown) {
    const known = this.read(name);
    const predicted = { value, question, unit, time: new Date().toISOString(), shown };
    if (!known.predicted && !known.remark) this.#write(name, { predicted, happened: null });
  }

  // Another tab may have shown the outcome meanwhile: then the number stays.
  takeBack({ name }) {
    if (this.read(name).happened) return;
    this.#unsaved.delete(name);
    try {
      localStorage.removeItem(PredictionStore.KEY + name);
    } catch { /* no storage: nothing was kept */ }
  }

  recordOutcome({ name, happened }) {
    const { predicted } = this.read(name);
    const outcome = { ...happened, time: new Date().toISOString() };
    if (predicted) this.#write(name, { predicted, happened: outcome });
  }

  #write(name, known) {
    const text = JSON.stringify(known);
    try {
      localStorage.setItem(PredictionStore.KEY + name, text);
    } catch {
      this.#unsaved.set(name, text);
    }
  }
}

// The questions, outcomes and tables of a built page.
//
// What stands between a question and its outcome would tell the answer. It is blurred until the
// reader has locked a number and wants to see what happened, or does without a guess.
class PredictionPage {
  #store = new PredictionStore();
  #shown = new Set(); // questions whose outcome is seen since the page was opened
  #outputs;

  constructor() {
    const elements = [...document.querySelectorAll(".prediction[data-prediction]")];
    this.#outputs = elements.map((element) => {
      return { element, entry: JSON.parse(element.dataset.prediction) };
    });
    this.#draw();
  }

  #draw() {
    for (const { element, entry } of this.#outputs) {
      if (entry.part === "table") predictionTable(element, this.#store.readAll());
      else if (entry.part === "field") this.#drawField(element, entry);
      else this.#drawOutcome(element, entry);
    }
  }

  #drawField(element, entry) {
    const { name } = entry;
    const known = this.#store.read(name);
    const shown = this.#isShown(name);
    this.#blur(name, !shown);
    const drawn = element.querySelector(".prediction-form");
    if (drawn && !known.predicted && !shown) return; // a number may be half written
    const redrawn = (change) => (value) => {
      change(value);
      this.#draw();
    };
    predictionField(element, { ...entry, ...known, happened: null }, {
      onLock: redrawn((value) => this.#store.lock(entry, value, this.#shown.has(name))),
      onTakeBack: shown ? null : redrawn(() => this.#store.takeBack(entry)),
      onShow: shown ? null : redrawn(() => this.#shown.add(name)),
    });
  }

  #drawOutcome(element, entry) {
    const known = this.#store.read(entry.name);
    if (this.#isShown(entry.name)) {
      if (!entry.unsteady) this.#store.recordOutcome(entry);
      predictionOutcome(element, { ...entry, ...known, happened: entry.happened });
    } else {
      const later = "What happened is shown here, and what is blurred above becomes clear, " +
        "once you have locked a number or chosen to go without.";
      element.replaceChildren(PredictionParts.make("p", {}, known.remark || later));
    }
  }

  #isShown(name) {
    return this.#shown.has(name) || Boolean(this.#store.read(name).happened);
  }

  #blur(name, blurred) {
    const [field, outcome] = ["field", "outcome"].map((part) => {
      const output = this.#outputs.find(
        ({ entry }) => entry.name === name && entry.part === part);
      return output && (output.element.closest(".cell") ?? output.element);
    });
    if (!outcome) return;
    for (const element of PredictionPage.#between(field, outcome)) {
      element.classList.toggle("prediction-unseen-yet", blurred);
      element.inert = blurred;
    }
  }

  // All that stands after the one element and before the other.
  static* #between(start, end) {
    for (let at = start; at && at !== end;) {
      if (at !== start && !at.contains(end)) yield at;
      if (at !== start && at.contains(end)) at = at.firstElementChild;
      else {
        while (at && !at.nextElementSibling) at = at.parentElement;
        at = at?.nextElementSibling;
      }
    }
  }
}

// A module has no current script: there the widget draws.
if (document.currentScript) {
  const start = () => new PredictionPage();
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
}
