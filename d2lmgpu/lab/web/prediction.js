// Predict first: a field whose number is locked, and what happened beside it. See prediction.py.
//
// One source for two lives. In a live notebook prediction.py makes it a module, and the kernel
// keeps what is locked. In a built page it is a plain script, and the browser keeps it.
"use strict";

class PredictionParts {
  static form({ question, unit, low, high, onLock }) {
    const { make } = PredictionParts;
    const id = `prediction-${Math.random().toString(36).slice(2)}`;
    // As text: a field for numbers hides a decimal comma from its script.
    const input = make("input", { type: "text", inputMode: "decimal", id, autocomplete: "off" });
    const button = make("button", { type: "button" }, "Lock");
    const said = make("p", { className: "prediction-error", id: `${id}-said` });
    said.setAttribute("role", "alert");
    input.setAttribute("aria-describedby", `${id}-unit ${said.id}`);
    const form = make(
      "div", { className: "prediction-form" },
      make("label", { htmlFor: id, className: "prediction-question" }, question),
      make("div", { className: "prediction-line" },
        input, make("span", { id: `${id}-unit` }, unit), button),
      said,
    );
    const lock = () => {
      if (input.readOnly) return; // it is on its way
      const value = PredictionParts.#written(input.value);
      const allowed = low <= value && value <= high;
      input.setAttribute("aria-invalid", !allowed);
      if (allowed) {
        input.readOnly = true;
        button.setAttribute("aria-disabled", true); // disabled, it would lose the keyboard's place
        said.textContent = "Waiting for the kernel. If it was restarted, run this cell again.";
        onLock(value);
      } else {
        const two = PredictionParts.#TWO.test(input.value.trim());
        const unclear = two ? " Write 1500 without a comma, and 1.5 with a point." : "";
        said.textContent = `Write a number from ${low} to ${high}.${unclear}`;
        input.focus();
      }
    };
    button.addEventListener("click", lock);
    // No form: JupyterLab keeps the Enter key from submitting one.
    input.addEventListener("keydown", (event) => event.key === "Enter" && lock());
    return form;
  }

  static #TWO = /,\d{3}$/; // it could be two numbers: 1,500 is 1500 to some and 1.5 to others

  // NaN where it is no number, or could be two.
  static #written(text) {
    const plain = text.trim().replace("\u2212", "-");
    const two = PredictionParts.#TWO.test(plain);
    const point = two ? plain : plain.replace(/^([^.,]*),([^.,]*)$/, "$1.$2");
    return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(point) ? Number(point) : NaN;
  }

  static words({ unit, predicted, happened, unsteady, remark }) {
    const { quantity, number, error } = PredictionParts;
    const parts = predicted ? [`You predicted ${quantity(predicted.value, unit, true)}.`] : [];
    if (happened) {
      const source = happened.source[0].toUpperCase() + happened.source.slice(1);
      parts.push(`${source}: ${quantity(happened.value, unit)}.`);
    }
    if (unsteady) {
      parts.push(`It was unsteady: ${unsteady}. It judges no prediction.`);
    } else if (predicted && happened) {
      const { far, percent } = error(predicted, happened);
      const share = percent === null ? "" : ` (${number(Math.abs(percent))} %)`;
      const way = far > 0 ? "high" : "low";
      const judged = far ? `${number(Math.abs(far))}${share} too ${way}` : "right";
      parts.push(`Your prediction is ${judged}.`);
      if (predicted.shown) parts.push("It was locked after the outcome had been shown.");
    } else if (happened) {
      parts.push("No prediction was made before.");
    }
    return [...parts, remark].filter(Boolean).join(" ");
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
    const text = (value, y, said, name = "") => draw(
      "text", { x: `${at(value)}%`, y, "text-anchor": anchor(at(value)), class: name }, said);
    const size = { width: "100%", height: 88 };
    const svg = draw("svg", { ...size, role: "img", class: "prediction-picture" });
    const line = (one, other, name) => draw(
      "line", { x1: `${at(one)}%`, x2: `${at(other)}%`, y1: 40, y2: 40, class: name });
    svg.append(line(from, to, "prediction-axis"));
    for (const end of [from, to]) svg.append(text(end, 84, number(end), "prediction-end"));
    const said = [`${happened.source} ${number(happened.value)}`];
    if (predicted) {
      said.unshift(`predicted ${number(predicted.value)}`);
      const x = `${at(predicted.value)}%`;
      if (!unsteady) svg.append(line(predicted.value, happened.value, "prediction-gap"));
      svg.append(
        draw("line", { x1: x, x2: x, y1: 24, y2: 50, class: "prediction-guess" }),
        text(predicted.value, 16, said[0]),
      );
    }
    const seen = ["measured", "counted"].includes(happened.source) ? "" : " prediction-unseen";
    svg.append(
      draw("circle", {
        cx: `${at(happened.value)}%`, cy: 40, r: 6, class: `prediction-outcome${seen}`,
      }),
      text(happened.value, 64, said.at(-1)),
    );
    svg.setAttribute("aria-label", `From ${number(from)} to ${number(to)}: ${said.join(", ")}`);
    return svg;
  }

  // Above 0 where the prediction was too high; an outcome of 0 has no percentage.
  static error({ value }, happened) {
    const far = value - happened.value;
    return { far, percent: happened.value ? (100 * far) / Math.abs(happened.value) : null };
  }

  // Three digits, or all of those before the point, thousands with commas: as style.py writes it.
  static number(value) {
    if (Math.abs(value) >= 99.95) return Math.round(value).toLocaleString("en-US");
    return String(Number(value.toPrecision(3)));
  }

  static quantity(value, unit, exact = false) {
    return `${exact ? value : PredictionParts.number(value)} ${unit ?? ""}`.trim();
  }

  static make(tag, properties, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }
}

// The question with a field, or the number that is `locked` ({ value, time }); `onLock(value)` is
// told once, of a number from `low` to `high`. `onTakeBack` and `onShow` are what a button below
// each of the two does; null for none. Called again, it draws again.
function predictionField(element, settings) {
  const { question, unit = "", locked = null, remark = "", low, high, onLock } = settings;
  const { onTakeBack = null, onShow = null } = settings;
  const { make, quantity, form } = PredictionParts;
  element.classList.add("prediction");
  element.dataset.lmSuppressShortcuts = ""; // JupyterLab takes no key that is pressed in here
  const kept = element.contains(document.activeElement);
  const children = [make("p", { className: "prediction-remark" }, remark)];
  const button = (said, onclick) => make("button", { type: "button", onclick }, said);
  const buttons = [
    onShow && button(locked ? "Show what happened" : "Show it without guessing", onShow),
    locked && onTakeBack && button("Take it back", onTakeBack),
  ].filter(Boolean);
  if (buttons.length) {
    children.unshift(make("div", { className: "prediction-line" }, ...buttons));
  }
  if (locked) {
    const number = quantity(locked.value, unit, true);
    const said = `Your prediction: ${number}, locked ${predictionTime(locked)}.`;
    children.unshift(make("p", { className: "prediction-locked", tabIndex: -1 }, said));
  }
  if (locked || remark) children.unshift(make("p", { className: "prediction-question" }, question));
  else children.unshift(form({ question, unit, low, high, onLock }));
  element.replaceChildren(...children);
  if (kept) element.querySelector(".prediction-locked, input")?.focus(); // where the keyboard was
}

// The reader's own time, as 2026-01-31 09:30.
function predictionTime({ time }) {
  return new Date(time).toLocaleString("sv").slice(0, 16);
}

// What happened beside what was predicted: on one axis, and in words.
function predictionOutcome(element, entry) {
  const { make, picture, words } = PredictionParts;
  element.classList.add("prediction");
  const said = make("p", { className: "prediction-said" }, words(entry));
  said.setAttribute("role", "status");
  element.replaceChildren(...(entry.happened ? [picture(entry)] : []), said);
}
