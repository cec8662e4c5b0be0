// All predictions with their errors as a table, which can be saved; and the widget of a notebook.
"use strict";

class PredictionTable {
  static HEAD = ["Question", "Predicted", "Happened", "Error", "Error in %", "Locked", "Remark"];

  static draw(entries) {
    const { make } = PredictionParts;
    if (!entries.length) return [make("p", {}, "You have not predicted anything yet.")];
    const all = entries.map(PredictionTable.#cells);
    const remarked = all.some((row) => row.at(-1));
    const shown = (cells) => (remarked ? cells : cells.slice(0, -1));
    const rows = all.map(shown);
    const line = (cells, tag) => make("tr", {}, ...cells.map((cell) => make(tag, {}, cell)));
    const box = make("div", { className: "prediction-table", tabIndex: 0, role: "region" },
      make("table", {},
        make("caption", {}, "All your predictions, and what happened"),
        make("thead", {}, line(shown(PredictionTable.HEAD), "th")),
        make("tbody", {}, ...rows.map((cells) => line(cells, "td")))));
    box.setAttribute("aria-label", "Your predictions");
    const button = make("button", { type: "button" }, "Download as CSV");
    button.addEventListener("click", () => PredictionTable.#save(entries));
    return [box, button];
  }

  static #cells(entry) {
    const { number, quantity, error } = PredictionParts;
    const { name, question, unit, predicted, happened, remark } = entry;
    const { far, percent } = predicted && happened ? error(predicted, happened) : {};
    return [
      question || name,
      predicted ? quantity(predicted.value, unit, true) : "",
      happened ? `${quantity(happened.value, unit)}, ${happened.source}` : "",
      far === undefined ? "" : number(far), (percent ?? null) === null ? "" : number(percent),
      predicted ? predictionTime(predicted) : "",
      [predicted?.shown ? "outcome was known" : "", remark].filter(Boolean).join(" "),
    ];
  }

  static #save(entries) {
    const quoted = (cell) => `"${String(cell ?? "").replaceAll('"', '""')}"`;
    const names = ["name", "question", "unit", "predicted", "happened", "source", "error",
      "percent", "locked", "after_outcome", "remark"];
    const rows = entries.map(({ name, question, unit, predicted, happened, remark }) => {
      const both = predicted && happened;
      const { far, percent } = both ? PredictionParts.error(predicted, happened) : {};
      return [name, question, unit, predicted?.value, happened?.value, happened?.source, far,
        percent, predicted?.time, predicted?.shown, remark];
    });
    const text = [names, ...rows].map((cells) => `${cells.map(quoted).join(",")}\n`).join("");
    const href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    PredictionParts.make("a", { href, download: "my-predictions.csv" }).click();
    URL.revokeObjectURL(href);
  }
}

function predictionTable(element, entries) {
  element.classList.add("prediction");
  element.replaceChildren(...PredictionTable.draw(entries));
}

function predictionDraw(element, entry, actions) {
  if (entry.part === "table") predictionTable(element, entry.entries);
  else if (entry.part === "outcome") predictionOutcome(element, entry);
  else predictionField(element, { ...entry, locked: entry.predicted, ...actions });
}

// What anywidget calls for each output; the kernel keeps what is locked and answers with an entry.
function predictionWidget({ model, el }) {
  const onLock = (value) => model.send({ do: "lock", value });
  const draw = () => {
    const entry = model.get("entry");
    const onTakeBack = entry.final ? null : () => model.send({ do: "take_back" });
    predictionDraw(el, entry, { onLock, onTakeBack });
  };
  model.on("change:entry", draw);
  draw();
  return () => model.off("change:entry", draw);
}
