// The curves of the reader's runs, one colour each: loss after each update, accuracy each epoch.
class TrainingCharts {
  static SHOWN = 6; // runs at once: as many colours as can be told apart
  static HEIGHT = 210;

  constructor(root, over) {
    this.over = over; // () => "epochs" or "seconds": what the curves are drawn over
    this.runs = [];
    this.kinds = [
      { name: "loss", curve: (run) => run.losses, range: TrainingCharts.#losses,
        updates: (run) => run.updates, dots: false },
      { name: "accuracy", curve: (run) => run.accuracies, range: TrainingCharts.#accuracies,
        updates: (run) => run.accuracies.map((_, epoch) => run.steps * (epoch + 1)), dots: true },
    ];
    for (const kind of this.kinds) {
      kind.box = root.querySelector(`.training-${kind.name}`);
      const pointed = (values) => this.#point(kind, values);
      kind.chart = new LabChart(kind.box.querySelector("div"), pointed, TrainingCharts.HEIGHT);
    }
    const theme = new MutationObserver(() => this.kinds.forEach(({ chart }) => chart.restyle()));
    theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  /** The class of the run's colour, none for a run that is not drawn any more. */
  static colour(run, runs) {
    const shown = runs.slice(-TrainingCharts.SHOWN).includes(run);
    return shown ? `training-colour-${TrainingCharts.#number(run)}` : "";
  }

  static #number(run) {
    return String(run.number % TrainingCharts.SHOWN);
  }

  show(runs) {
    this.runs = runs.slice(-TrainingCharts.SHOWN);
    this.update();
  }

  /** The last run goes on, or the curves are drawn over something else. */
  update() {
    for (const kind of this.kinds) {
      kind.chart.draw(this.#picture(kind));
      this.#describe(kind);
    }
  }

  #picture(kind) {
    const last = this.runs.length - 1;
    const lines = this.runs.map((run, place) => ({
      id: run.number,
      name: `run ${run.number}`,
      colour: TrainingCharts.#number(run),
      // Equal curves cover each other: the last one is thin, and what lies under it is seen beside it.
      width: place === last ? 2 : 6,
      dots: kind.dots,
      size: place === last ? 7 : 12,
      points: this.#points(run, kind),
    }));
    const values = lines.flatMap(({ points }) => points.map(([, y]) => y)).filter(Number.isFinite);
    return {
      x: { label: this.over(), range: [0, this.#end()], whole: true },
      y: { label: kind.name, range: kind.range(values) },
      lines,
    };
  }

  #points(run, { curve, updates }) {
    const made = updates(run);
    const seconds = this.over() === "seconds";
    return curve(run).map((value, index) => {
      const update = made[index];
      return [seconds ? run.seconds[update - 1] : update / run.steps, value];
    });
  }

  /** Where the axis ends: after whole epochs or round seconds, so that it seldom jumps. */
  #end() {
    if (this.over() === "epochs") return Math.max(1, ...this.runs.map(TrainingCharts.epochs));
    return LabWords.roundUp(Math.max(1, ...this.runs.map((run) => run.seconds.at(-1) ?? 0)));
  }

  /** The epochs of a run: of one that was stopped only those that it has begun. */
  static epochs({ how, epochs, steps, updates }) {
    return how === "stopped" ? Math.ceil((updates.at(-1) ?? 0) / steps) : epochs;
  }

  static #losses(values) {
    return [0, Math.min(10, values.reduce((high, value) => Math.max(high, value), 2.5))];
  }

  static #accuracies(values) {
    return [Math.floor(Math.min(0.5, ...values) * 10) / 10, Math.max(0.9, ...values)];
  }

  /** The values under the pointer, in words. */
  #point({ box }, values) {
    const points = Object.entries(values ?? {});
    const words = points.map(([number, [, y]]) => `run ${number}: ${y.toFixed(3)}`);
    const at = points.at(-1)?.[1][0];
    box.querySelector("p").textContent = words.length
      ? `${words.join(", ")} after ${at.toFixed(2)} ${this.over()}`
      : "";
  }

  #describe({ box, curve }) {
    const last = this.runs
      .filter((run) => curve(run).length)
      .map((run) => `run ${run.number} ${curve(run).at(-1).toFixed(3)}`);
    const name = box.querySelector("figcaption").textContent;
    box.querySelector("div").ariaLabel = `${name}, at last ${last.join(", ") || "none yet"}`;
  }
}
