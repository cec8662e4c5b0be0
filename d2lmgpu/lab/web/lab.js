// The lab: its parts put together over a source of numbers, the kernel's widget or a record.
//
// A source has get(name), on("change:name", heard), off(name, heard) and send({ do, … });
// get("names") are those of all that is drawn (see d2lmgpu/lab/messages.py).
"use strict";

class Lab {
  static PARTS = `
    <div class="lab-controls"></div>
    <div class="lab-live" hidden></div>
    <p class="lab-silence" role="alert"></p>
    <p class="lab-troubles" role="alert"></p>
    <div class="lab-results" hidden>
      <ul class="lab-runs"></ul>
      <div class="lab-charts">
        <figure class="lab-curves"></figure><figure class="lab-speedup"></figure>
      </div>
      <figure class="lab-where"></figure>
      <div class="lab-all"></div>
    </div>
    <div class="lab-save"></div>`;
  static RESULTS = ["runs", "table", "speedups", "why", "files", "hidden"];

  constructor(root, source, recorded = false) {
    this.root = document.createElement("form"); // so that radio buttons are this lab's alone
    this.root.className = "lab-root";
    // JupyterLab leaves the keys to the lab: both those that it takes first and those that come up.
    this.root.dataset.lmSuppressShortcuts = "true";
    this.root.addEventListener("keydown", (event) => event.stopPropagation());
    this.root.addEventListener("submit", (event) => event.preventDefault());
    this.root.innerHTML = Lab.PARTS;
    root.append(this.root);
    this.recorded = recorded;
    this.line = recorded ? null : new LabLine(this.find("silence"), source);
    this.source = this.line ?? source;
    this.#make();
    this.dirty = new Set();
    const names = source.get("names");
    this.heard = [...names, "heard"].map((name) => {
      const hear = () => this.#mark(name);
      this.source.on(`change:${name}`, hear);
      return [`change:${name}`, hear];
    });
    this.theme = new LabTheme(this.root, () => {
      this.curves.chart.restyle();
      this.speedup.chart.restyle();
    });
    for (const name of names) this.#mark(name);
  }

  find(name) {
    return this.root.querySelector(`.lab-${name}`);
  }

  #make() {
    const { source } = this;
    this.runs = new LabRuns(this.find("runs"), source, () => this.#mark("runs"));
    this.curves = new LabCurves(this.find("curves"), (values) => this.runs.point(values));
    this.speedup = new LabSpeedup(this.find("speedup"));
    this.where = new LabWhere(this.find("where"));
    this.table = new LabTable(this.find("all"), source);
    this.save = new LabSave(this.find("save"), source, this.curves);
    this.lanes = new LabLanes(this.find("live"));
    if (!this.recorded) this.controls = new LabControls(this.find("controls"), source);
  }

  /** Draw what has changed, once a frame; in a hidden tab there are no frames, and no need. */
  #mark(name) {
    this.dirty.add(name);
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      const dirty = this.dirty;
      this.dirty = new Set();
      if (!this.recorded) this.#showLive();
      this.#showRuns();
      if (Lab.RESULTS.some((name) => dirty.has(name))) this.#showResults();
      if (dirty.has("state") || dirty.has("speedups")) this.#showSpeedup();
    });
  }

  #showLive() {
    this.controls.showSettings();
    this.controls.showState();
    this.controls.showPrediction();
    this.lanes.show(this.source.get("live"));
    this.find("troubles").textContent = this.source.get("troubles");
  }

  #showRuns() {
    const live = this.source.get("live");
    const ended = this.source.get("runs");
    // A run that has ended is among the runs before it is live no more: it is one all the same.
    const goesOn = live !== null && !ended.some(({ id }) => id === live.run.id);
    const runs = goesOn ? [...ended, live.run] : ended;
    this.find("results").hidden = !runs.length;
    this.runs.take(runs);
    this.curves.show(this.runs.shown);
  }

  #showResults() {
    this.where.show(this.runs.shown, this.source.get("why"));
    this.table.show(this.source.get("table"), (id) => this.runs.find(id), !this.recorded);
    this.save.show(this.source.get("runs").length > 0);
  }

  #showSpeedup() {
    const speedups = this.source.get("speedups");
    const chosen = this.source.get("table").baseline !== null;
    const base = (chosen && speedups[0]?.over_num_gpus) || 1;
    this.speedup.show(speedups, this.source.get("state")?.forecasts ?? [], base);
  }

  end() {
    for (const [name, hear] of this.heard) this.source.off(name, hear);
    this.line?.end();
    cancelAnimationFrame(this.frame);
    this.theme.end();
    this.curves.chart.end();
    this.speedup.chart.end();
    this.root.remove();
  }
}
