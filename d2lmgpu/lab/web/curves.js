// All runs over each other, on axes that the reader switches.
"use strict";

class LabCurves {
  static XS = { epoch: "epochs", seconds: "seconds", samples: "samples seen" };
  static SPEED = "samples/s";

  constructor(root, pointed) {
    this.root = root;
    root.innerHTML = `
      <figcaption>Runs, over each other</figcaption>
      <div class="lab-axes"></div>
      <div class="lab-plot" tabindex="0" role="img"></div>`;
    [this.x, this.y] = ["epoch", null];
    const axes = root.querySelector(".lab-axes");
    this.ys = new LabChoice(axes, "y-axis", "Curve", (value) => this.#switch({ y: value }));
    this.xs = new LabChoice(axes, "x-axis", "Over", (value) => this.#switch({ x: value }));
    this.plot = root.querySelector(".lab-plot");
    this.chart = new LabChart(this.plot, pointed);
    this.plot.addEventListener("keydown", (event) => this.#key(event));
    this.plot.addEventListener("blur", () => this.chart.leave());
    this.runs = [];
  }

  /** Draw these runs; each has a `colour` and a `tag` beside what the kernel says of it. */
  show(runs) {
    this.runs = runs;
    const labels = [...new Set(runs.flatMap((run) => Object.keys(run.curves)))];
    labels.sort((a, b) => (a === LabCurves.SPEED) - (b === LabCurves.SPEED));
    if (!labels.includes(this.y) && labels.length) this.y = LabCurves.#first(labels);
    this.ys.show(labels.map((label) => [label, LabWords.html(label)]), this.y);
    this.xs.show(Object.entries(LabCurves.XS), this.x);
    this.chart.draw(this.picture());
    this.plot.ariaLabel = this.#inWords();
  }

  #switch(chosen) {
    Object.assign(this, chosen);
    this.show(this.runs);
  }

  static #first(labels) {
    return labels.find((label) => /acc/i.test(label)) ?? labels[0];
  }

  picture() {
    const at = Object.keys(LabCurves.XS).indexOf(this.x);
    const lines = this.runs.flatMap((run) => {
      const points = (run.curves[this.y] ?? []).map((point) => [point[at], point[3]]);
      const known = points.filter(([x]) => x !== null && x !== undefined);
      const { id, name, colour, tag } = run;
      const diverged = this.#diverged(known);
      // A run of few epochs has few points: each of them can be seen.
      const look = { id, name, colour, tag, diverged, dots: known.length < 40 };
      return known.length ? [{ ...look, points: known }] : [];
    });
    const values = lines.flatMap(({ points }) => points.map(([, y]) => y)).filter(Number.isFinite);
    const end = this.#end(lines);
    return {
      x: { label: LabCurves.XS[this.x], range: [0, end], whole: this.x === "epoch" && end > 1 },
      y: { label: this.y ?? "", range: this.#range(values, lines) },
      lines: [...lines, ...this.#forecasts(lines, end)],
    };
  }

  /** Whether some value is not finite; a speed that is missing was not measured. */
  #diverged(points) {
    return this.y !== LabCurves.SPEED && points.some((point) => !Number.isFinite(point.at(-1)));
  }

  /** How fast each run was modelled to be: dashed, to the end of the axis. */
  #forecasts(lines, end) {
    if (this.y !== LabCurves.SPEED) return [];
    return this.runs
      .filter((run) => run.forecast && lines.some(({ name }) => name === run.name))
      .map(({ name, colour, forecast }) => ({
        name: `${name}, modelled`, colour, dash: true, points: [[0, forecast], [end, forecast]],
      }));
  }

  // Where the axis ends: after all epochs, or at a round number, so that it seldom jumps. Of a run
  // that was stopped or has failed the epochs that it did not reach do not count.
  #end(lines) {
    const reached = Math.max(0, ...lines.flatMap(({ points }) => points.map(([x]) => x)));
    if (this.x !== "epoch") return reached ? LabWords.roundUp(reached) : 1;
    const whole = this.runs.filter(({ status }) => ["running", "finished"].includes(status));
    const asked = whole.map((run) => run.settings.num_epochs ?? 0);
    return Math.max(1, Math.ceil(reached), ...asked);
  }

  #range(values, lines) {
    if (!values.length) return [0, 1];
    const [low, high] = [Math.min(...values), Math.max(...values)];
    if (this.y === LabCurves.SPEED) {
      const forecasts = this.runs.map((run) => run.forecast ?? 0);
      return [0, LabWords.roundUp(Math.max(high, ...forecasts))];
    }
    if (/acc/i.test(this.y) && low >= 0 && high <= 1) return LabCurves.#accuracies(low, high);
    // A loss that explodes must not make all others a flat line: it leaves the chart at the top.
    const start = Math.max(...lines.map(({ points }) => points[0][1]).filter(Number.isFinite));
    const top = start > 0 ? Math.min(high, 2 * start) : high;
    const bottom = Math.min(0, low);
    return [bottom < 0 ? -LabWords.roundUp(-bottom) : 0, top > 0 ? LabWords.roundUp(top) : 1];
  }

  /** Tenths around what there is, three of them at least: no flat line from 0 to 0.77. */
  static #accuracies(low, high) {
    const top = Math.min(1, Math.ceil(high * 10 + 1e-9) / 10);
    return [Math.max(0, Math.min(Math.floor(low * 10) / 10, top - 0.3)), top];
  }

  #key(event) {
    const distance = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!distance) return;
    event.preventDefault();
    this.chart.step(distance);
  }

  #inWords() {
    const at = Object.keys(LabCurves.XS).indexOf(this.x);
    const last = this.runs.filter((run) => run.curves[this.y]?.length).map((run) => {
      const point = run.curves[this.y].at(-1);
      const value = this.#diverged([point]) ? "diverged" : LabWords.number(point[3]);
      return `${run.name} ${value} at ${LabWords.number(point[at])}`;
    });
    const what = `${this.y ?? "No curve"} over ${LabCurves.XS[this.x]}`;
    return `${what}, at last: ${last.join("; ") || "no run yet"}`;
  }
}
