// The runs as a table, repeats taken together, and what their speedups refer to.
"use strict";

class LabTable {
  static OWN = "own"; // the lab chooses the baseline

  constructor(root, source) {
    root.innerHTML = `
      <div class="lab-baseline-box"></div>
      <div class="lab-table" tabindex="0" role="region" aria-label="Table of runs"></div>
      <div class="lab-remarks"></div>`;
    this.root = root;
    [this.box, this.table, this.remarks] = root.children;
    this.table.addEventListener("click", ({ target }) => {
      const { row } = target.dataset;
      if (row) source.send({ do: "one_device", row: Number(row) });
    });
    this.baseline = new LabChoice(this.box, "baseline", "Speedup over", (value) => {
      source.send({ do: "baseline", row: value === LabTable.OWN ? null : Number(value) });
    });
  }

  /** `find(id)` is the run with its colour; `live` whether runs and other baselines can be had. */
  show({ columns, rows, remarks, baseline }, find, live) {
    this.root.hidden = !rows.length;
    this.box.hidden = !live || rows.length < 2;
    const own = [LabTable.OWN, "the lab chooses"];
    const options = rows.map(({ row }) => [String(row), `row ${row}`]);
    this.baseline.show([own, ...options], String(baseline ?? LabTable.OWN));
    const head = columns.map((name) => `<th scope="col">${LabWords.html(name)}</th>`).join("");
    const body = rows.map((row) => LabTable.#row(row, columns, find, live)).join("");
    this.table.innerHTML = `<table>
      <caption>All runs: the median of the repeats, and from the least to the greatest</caption>
      <thead><tr>${head}</tr></thead><tbody>${body}</tbody></table>`;
    this.remarks.innerHTML = remarks.map((note) => `<p>${LabWords.html(note)}</p>`).join("");
  }

  static #row({ row, runs, cells, alone }, columns, find, live) {
    const marks = runs.map(find).filter(Boolean).map(({ colour }) => {
      return `<i class="lab-mark lab-mark-dot" style="--lab-run: var(--lab-${colour})"></i>`;
    });
    const tds = columns.map((name, index) => {
      const text = LabWords.html(cells[name] ?? "").replace(/\(.*\)/, "<span>$&</span>"); // a range
      const lacks = live && alone && name === "Speedup"; // the run that it could be compared with
      const button = lacks
        ? ` <button type="button" data-row="${row}">Run one device, too</button>` : "";
      return `<td>${index ? "" : marks.join("")}${text}${button}</td>`;
    });
    return `<tr>${tds.join("")}</tr>`;
  }
}
