// Predictions in a built page: the reader's browser keeps them. Loaded by the pages alone.
//
// What stands between a question and its outcome would tell the answer. It is blurred until the
// reader has locked a number and wants to see what happened, or does without a guess.
(() => {
  "use strict";
  const KEY = "d2lmgpu-prediction:";
  const LOST = "This browser keeps nothing for this page, as in a private window: what you lock " +
    "is locked until you leave the page.";
  const unkept = new Map();
  const shown = new Set(); // questions whose outcome is seen since the page was opened

  // What is known of the question: { predicted, happened, remark }.
  function read(name) {
    let text = unkept.get(name) ?? null;
    const remark = text ? LOST : "";
    try {
      text ??= localStorage.getItem(KEY + name);
    } catch { /* no storage: nothing was kept */ }
    if (text === null) return { predicted: null, happened: null, remark };
    try {
      const { predicted, happened = null } = JSON.parse(text);
      if (Number.isFinite(predicted.value)) return { predicted, happened, remark };
    } catch { /* said below */ }
    const damaged = `What this browser keeps as ${KEY + name} is damaged: remove it, ` +
      "and the question is open again.";
    return { predicted: null, happened: null, remark: damaged };
  }

  function write(name, known) {
    const text = JSON.stringify(known);
    try {
      localStorage.setItem(KEY + name, text);
    } catch {
      unkept.set(name, text);
    }
  }

  function all() {
    const names = new Set(unkept.keys());
    try {
      for (const key of Object.keys(localStorage)) {
        if (key.startsWith(KEY)) names.add(key.slice(KEY.length));
      }
    } catch { /* no storage */ }
    return [...names].sort().map((name) => {
      const { predicted, happened, remark } = read(name);
      return { name, ...predicted, predicted, happened, remark };
    });
  }

  function lock({ name, question, unit }, value) {
    const known = read(name); // perhaps locked meanwhile, in another tab
    const time = new Date().toISOString();
    const predicted = { value, question, unit, time, shown: shown.has(name) };
    if (!known.predicted && !known.remark) write(name, { predicted, happened: null });
    drawAll();
  }

  function takeBack({ name }) {
    if (read(name).happened) return drawAll(); // seen meanwhile, in another tab
    unkept.delete(name);
    try {
      localStorage.removeItem(KEY + name);
    } catch { /* no storage: nothing was kept */ }
    drawAll();
  }

  function show({ name }) {
    shown.add(name);
    drawAll();
  }

  // All that stands after the one element and before the other.
  function* between(start, end) {
    for (let at = start; at && at !== end;) {
      if (at !== start && !at.contains(end)) yield at;
      if (at !== start && at.contains(end)) at = at.firstElementChild;
      else {
        while (at && !at.nextElementSibling) at = at.parentElement;
        at = at?.nextElementSibling;
      }
    }
  }

  function blur(name, blurred) {
    const [field, outcome] = ["field", "outcome"].map((part) => {
      const place = places.find(({ entry }) => entry.name === name && entry.part === part);
      return place && (place.element.closest(".cell") ?? place.element);
    });
    if (!outcome) return;
    for (const element of between(field, outcome)) {
      element.classList.toggle("prediction-unseen-yet", blurred);
      element.inert = blurred;
    }
  }

  const places = [];

  function drawAll() {
    for (const { element, entry } of places) draw(element, entry);
  }

  function draw(element, entry) {
    const known = read(entry.name);
    const seen = Boolean(known.happened) || shown.has(entry.name);
    if (entry.part === "table") predictionTable(element, all());
    else if (entry.part === "field") {
      blur(entry.name, !seen);
      const drawn = element.querySelector(".prediction-form");
      if (drawn && !known.predicted && !seen) return; // a number may be half written
      const open = { ...entry, ...known, happened: null };
      predictionDraw(element, open, {
        onLock: (value) => lock(entry, value),
        onTakeBack: seen ? null : () => takeBack(entry),
        onShow: seen ? null : () => show(entry),
      });
    } else if (seen) {
      const happened = { ...entry.happened, time: new Date().toISOString() };
      if (known.predicted && !entry.unsteady) {
        write(entry.name, { predicted: known.predicted, happened });
      }
      predictionOutcome(element, { ...entry, ...known, happened: entry.happened });
    } else {
      const said = document.createElement("p");
      const later = "What happened is shown here, and what is blurred above becomes clear, " +
        "once you have locked a number or chosen to go without.";
      said.textContent = known.remark || later;
      element.replaceChildren(said);
    }
  }

  function start() {
    for (const element of document.querySelectorAll(".prediction[data-prediction]")) {
      places.push({ element, entry: JSON.parse(element.dataset.prediction) });
    }
    drawAll();
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
