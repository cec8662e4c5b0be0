// Where the time of a step went: one bar a run, all on one scale, and a sentence about the newest.
"use strict";

class LabWhere {
  constructor(root) {
    this.root = root;
    root.innerHTML = `<figcaption></figcaption><div class="lab-bars"></div><p class="lab-why"></p>`;
  }

  show(runs, why) {
    const timed = runs.filter((run) => run.where);
    this.root.hidden = !timed.length && !why;
    if (this.root.hidden) return;
    const shown = LabLanes.WHAT.filter((what) => timed.some((run) => run.where[what] > 0));
    const longest = Math.max(...timed.map(LabWhere.#total));
    const [caption, bars, sentence] = this.root.children;
    const first = shown.includes(LabLanes.MEETING) ? " (of processes: the first)" : "";
    caption.innerHTML =
      `Where the time of a step went, mean over devices${first}, measured: ${LabLanes.key(shown)}`;
    bars.innerHTML = timed.map((run) => LabWhere.#bar(run, shown, longest)).join("");
    sentence.textContent = why;
  }

  static #total({ where }) {
    return LabLanes.WHAT.reduce((sum, what) => sum + (where[what] ?? 0), 0);
  }

  static #bar(run, shown, longest) {
    const total = LabWhere.#total(run);
    const parts = shown.filter((what) => run.where[what] > 0);
    const words = parts.map((what) => `${what} ${LabWords.milliseconds(run.where[what])}`);
    const bars = parts.map((what) => {
      const width = `width: ${(100 * run.where[what] / longest).toFixed(2)}%`;
      return `<i class="${LabLanes.look(what)}" style="${width}"></i>`;
    });
    const mark = run.unsteady ? ", unsteady" : "";
    const name = LabWords.html(`${run.tag}. ${run.name}${mark}`);
    return `<div class="lab-lane"><span>${name}</span>
      <div role="img" aria-label="${words.join(", ")}" title="${words.join(", ")}">
        ${bars.join("")}</div>
      <span>${LabWords.milliseconds(total)}</span></div>`;
  }
}
