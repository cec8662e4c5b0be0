// Predictions in a built page: the reader's browser keeps them. Loaded by the pages alone.
(() => {
  "use strict";
  const KEY = "d2lmgpu-prediction:";
  const LOST = "This browser keeps nothing for this page, as in a private window: what you lock " +
    "is locked until you leave the page.";
  const unkept = new Map();

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
    const predicted = { value, question, unit, time: new Date().toISOString() };
    if (!known.predicted && !known.remark) write(name, { predicted, happened: null });
    drawAll();
  }

  const places = [];

  function drawAll() {
    for (const { element, entry } of places) draw(element, entry);
  }

  function draw(element, entry) {
    const known = read(entry.name);
    if (entry.part === "table") predictionTable(element, all());
    else if (entry.part === "field") {
      if (!known.predicted && element.querySelector(".prediction-form")) return;
      const open = { ...entry, ...known, happened: null };
      predictionDraw(element, open, (value) => lock(entry, value));
    } else if (known.predicted) {
      const happened = { ...entry.happened, time: new Date().toISOString() };
      write(entry.name, { predicted: known.predicted, happened });
      predictionOutcome(element, { ...entry, ...known, happened: entry.happened });
    } else {
      const said = document.createElement("p");
      const later = "What happened is shown here once you have locked your prediction.";
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
