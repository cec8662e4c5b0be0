// The curves of the reader's runs, one colour each: loss after each update, accuracy each epoch.
class TrainingCharts {
  static SHOWN = 6; // runs at once: as many colours as can be told apart
  static HEIGHT = 210;

  constructor(root, over) {
    this.root = root;
    this.over = over; // () => "epochs" or "seconds": what the curves are drawn over
    this.runs = [];
    this.kinds = [
      { box: root.querySelector(".training-loss"), curve: (run) => run.losses, dots: false },
      { box: root.querySelector(".training-accuracy"), curve: (run) => run.accuracies, dots: true },
    ];
    new ResizeObserver(() => this.#fit()).observe(root);
    const theme = new MutationObserver(() => this.show(this.runs));
    theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  /** The class of the run's colour, none for a run that is not drawn any more. */
  static colour(run, runs) {
    const shown = runs.slice(-TrainingCharts.SHOWN).includes(run);
    return shown ? `training-colour-${run.number % TrainingCharts.SHOWN}` : "";
  }

  /** Other runs than before, another axis or other colours: the charts are made anew. */
  show(runs) {
    this.runs = runs.slice(-TrainingCharts.SHOWN);
    for (const kind of this.kinds) {
      kind.plot?.destroy();
      kind.plot = new uPlot(this.#options(kind), this.#data(kind), kind.box.querySelector("div"));
    }
    this.#describe();
  }

  /** The last run goes on. */
  update() {
    for (const kind of this.kinds) kind.plot.setData(this.#data(kind));
    this.#describe();
  }

  #data(kind) {
    const finite = (values) => values.map((value) => (Number.isFinite(value) ? value : null));
    const tables = this.runs.map((run) => [this.#xs(run, kind), finite(kind.curve(run))]);
    return tables.length ? uPlot.join(tables) : [[]];
  }

  #xs(run, { dots }) {
    const updates = dots ? run.accuracies.map((_, epoch) => run.steps * (epoch + 1)) : run.updates;
    return updates.map((update) =>
      this.over() === "seconds" ? run.seconds[update - 1] : update / run.steps,
    );
  }

  #options(kind) {
    const css = getComputedStyle(this.root);
    const [ink, line] = ["--pst-color-text-muted", "--pst-color-border"].map((name) =>
      css.getPropertyValue(name),
    );
    const font = `12px ${css.fontFamily}`;
    const axis = { stroke: ink, font, grid: { stroke: line, width: 1 }, ticks: { stroke: line } };
    const curves = this.runs.map((run, place) => ({
      label: `run ${run.number}`,
      stroke: css.getPropertyValue(`--training-${run.number % TrainingCharts.SHOWN}`),
      // Equal curves cover each other: the last one is thin, and what lies under it is seen beside it.
      width: place === this.runs.length - 1 ? 2 : 6,
      points: { show: kind.dots, size: place === this.runs.length - 1 ? 7 : 12 },
    }));
    return {
      width: this.#width(kind),
      height: TrainingCharts.HEIGHT,
      legend: { show: false },
      cursor: { y: false, drag: { x: false } },
      scales: {
        x: { time: false, range: () => [0, this.#end()] },
        y: { range: kind.dots ? TrainingCharts.#accuracies : TrainingCharts.#losses },
      },
      axes: [
        { ...axis, size: 30, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500], space: 30 },
        { ...axis, size: 38 },
      ],
      series: [{}, ...curves],
      hooks: { setCursor: [(plot) => this.#point(plot, kind)] },
    };
  }

  /** Where the axis ends: after whole epochs or round seconds, so that it seldom jumps. */
  #end() {
    if (this.over() === "epochs") return Math.max(1, ...this.runs.map(TrainingCharts.epochs));
    const longest = Math.max(0, ...this.runs.map((run) => run.seconds.at(-1) ?? 0));
    const unit = 10 ** Math.floor(Math.log10(Math.max(1, longest)));
    return Math.ceil(Math.max(1, longest) / unit) * unit;
  }

  /** The epochs of a run: of one that was stopped only those that it has begun. */
  static epochs({ how, epochs, steps, updates }) {
    return how === "stopped" ? Math.ceil((updates.at(-1) ?? 0) / steps) : epochs;
  }

  static #losses(plot, low, high) {
    return [0, Math.min(10, Math.max(2.5, high ?? 0))];
  }

  static #accuracies(plot, low, high) {
    const bottom = Math.floor(Math.min(0.5, low ?? 0.5) * 10) / 10;
    return [bottom, Math.max(0.9, high ?? 0.9)];
  }

  /** The values under the pointer, in words. */
  #point(plot, { box }) {
    const at = plot.cursor.idx;
    const values = this.runs
      .map((run, place) => [run.number, at === null ? null : plot.data[place + 1]?.[at]])
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([number, value]) => `run ${number}: ${value.toFixed(3)}`);
    const unit = this.over() === "seconds" ? "seconds" : "epochs";
    box.querySelector("p").textContent = values.length
      ? `${values.join(", ")} after ${plot.data[0][at].toFixed(2)} ${unit}`
      : "";
  }

  #describe() {
    for (const kind of this.kinds) {
      const last = this.runs
        .filter((run) => kind.curve(run).length)
        .map((run) => `run ${run.number} ${kind.curve(run).at(-1).toFixed(3)}`);
      const name = kind.box.querySelector("figcaption").textContent;
      kind.box.querySelector("div").ariaLabel = `${name}, at last ${last.join(", ") || "none yet"}`;
    }
  }

  #width({ box }) {
    return Math.max(200, box.querySelector("div").clientWidth);
  }

  #fit() {
    for (const kind of this.kinds) {
      kind.plot?.setSize({ width: this.#width(kind), height: TrainingCharts.HEIGHT });
    }
  }
}
