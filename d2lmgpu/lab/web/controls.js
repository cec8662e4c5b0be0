// What the reader chooses before a run, and the buttons. The kernel says what holds.
"use strict";

class LabControls {
  static DEVICES = [1, 2, 4, 8, 16];
  static BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192];
  static RATES = [1e-4, 1e-3, 0.01, 0.1, 1].flatMap((unit) => [1, 2, 5].map((n) => {
    return Number((n * unit).toPrecision(1));
  })).concat(10);
  static HTML = `
    <div class="lab-settings"></div>
    <p class="lab-note"></p>
    <div class="lab-prediction" hidden><div></div><div></div></div>
    <p class="lab-forecast"></p>
    <p class="lab-buttons">
      <button type="button" class="lab-run">Run</button>
      <button type="button" class="lab-stop">Stop</button>
      <button type="button" class="lab-reset">Reset</button>
      <button type="button" class="lab-measure">Measure this machine (30 s)</button>
    </p>
    <p class="lab-hint"></p>
    <div class="lab-measuring" hidden>
      <progress max="1" aria-label="Progress of measuring"></progress><span></span>
    </div>
    <p class="lab-message" role="status"></p>
    <details class="lab-prints" open hidden><summary></summary><pre></pre></details>
    <details class="lab-details" hidden><summary>Traceback</summary><pre></pre></details>`;

  constructor(root, source) {
    this.root = root;
    this.source = source;
    root.innerHTML = LabControls.HTML;
    this.#makeSettings(this.find(".lab-settings"));
    for (const name of ["run", "stop", "reset", "measure"]) {
      this[name] = this.find(`.lab-${name}`);
      this[name].addEventListener("click", () => this.#press(name));
    }
  }

  find(selector) {
    return this.root.querySelector(selector);
  }

  #makeSettings(place) {
    const set = (name, read = (value) => value) => (value) => this.#set({ [name]: read(value) });
    this.train = new LabChoice(place, "train", "Training", set("train"));
    const box = document.createElement("div");
    box.className = "lab-devices-box";
    place.append(box);
    this.devices = new LabChoice(box, "devices", "Devices", set("num_gpus", Number));
    this.other = new LabNumber(box, { name: "num-gpus", label: "Number" }, set("num_gpus"));
    this.batch = new LabNumber(
      place, { name: "batch-size", label: "Batch size", steps: LabControls.BATCH_SIZES },
      set("batch_size"),
    );
    const lr = { name: "lr", label: "Learning rate", steps: LabControls.RATES, whole: false };
    this.lr = new LabNumber(place, lr, set("lr"));
    const scale = document.createElement("label");
    scale.className = "lab-scale-lr";
    scale.innerHTML = '<input type="checkbox"> scale with batch';
    this.scale = scale.querySelector("input");
    this.scale.addEventListener("change", () => this.#set({ scale_lr: this.scale.checked }));
    this.lr.root.append(scale);
    const epochs = { name: "num-epochs", label: "Epochs", empty: "own" };
    this.epochs = new LabNumber(place, epochs, set("num_epochs"));
  }

  #set(settings) {
    this.source.send({ do: "set", settings });
  }

  /** Press a button; whoever did it with the keyboard goes on at the one that follows. */
  #press(name) {
    this.source.send({ do: name });
    if (name === "run") this.next = this.stop;
    if (name === "stop") this.next = this.run;
  }

  /** The settings that hold, unless one may be on its way that the kernel has not heard of yet. */
  showSettings() {
    if (this.source.sent !== null) return;
    const about = this.source.get("about");
    const settings = this.source.get("settings");
    const { wrong } = this.source.get("state");
    const known = about.devices ?? Infinity;
    this.train.root.hidden = about.trains.length < 2;
    this.train.show(about.trains.map((name) => [name, LabWords.html(name)]), settings.train);
    const devices = LabControls.DEVICES.filter((count) => count <= about.most);
    this.devices.show(devices.map((count) => {
      return [String(count), count > known ? `${count} <small>simulated</small>` : String(count)];
    }), String(settings.num_gpus));
    this.other.show(settings.num_gpus, wrong.num_gpus);
    this.batch.show(settings.batch_size, wrong.batch_size);
    this.lr.show(settings.lr, wrong.lr);
    this.scale.checked = settings.scale_lr;
    this.epochs.root.hidden = !about.takes_epochs;
    this.epochs.show(settings.num_epochs, wrong.num_epochs);
    this.find(".lab-note").textContent = about.note;
  }

  showState() {
    const state = this.source.get("state");
    const idle = state.status === "idle";
    const from = this.root.contains(document.activeElement) && document.activeElement;
    const wrong = Object.keys(state.wrong).length > 0;
    this.run.disabled = !idle || state.measuring !== null || wrong;
    this.stop.disabled = state.status !== "running" && state.measuring === null;
    this.measure.hidden = !state.can_measure && state.measuring === null;
    this.measure.disabled = !idle || state.measuring !== null;
    if (from?.disabled && !this.next?.disabled) this.next?.focus({ preventScroll: true });
    this.find(".lab-message").textContent = state.message;
    this.find(".lab-hint").textContent = state.hint;
    this.find(".lab-forecast").textContent = LabControls.#forecast(state.forecast);
    this.#showText(".lab-details", state.details);
    this.#showText(".lab-prints", state.printed.text);
    this.find(".lab-prints summary").textContent = LabControls.#printed(state.printed);
    const measuring = this.find(".lab-measuring");
    measuring.hidden = state.measuring === null;
    measuring.querySelector("progress").value = state.measuring?.done ?? 0;
    measuring.querySelector("span").textContent = state.measuring?.message ?? "";
  }

  /** What the reader has predicted of these settings, and what happened; drawn when it changes. */
  showPrediction() {
    const entry = this.source.get("prediction") ?? null;
    const now = JSON.stringify(entry);
    if (now === this.predicted) return;
    this.predicted = now;
    const place = this.find(".lab-prediction");
    place.hidden = entry === null;
    if (entry === null) return;
    const [field, outcome] = place.children;
    const onLock = (value) => this.source.send({ do: "predict", value });
    field.hidden = entry.predicted === null && entry.happened !== null; // too late to predict
    const onTakeBack = entry.happened ? null : () => this.source.send({ do: "take_back" });
    predictionField(field, entry, { onLock, onTakeBack });
    outcome.hidden = entry.predicted === null || entry.happened === null;
    predictionOutcome(outcome, entry);
  }

  /** A text that folds, which is there only while there is one. */
  #showText(selector, text) {
    this.find(selector).hidden = !text;
    this.find(`${selector} pre`).textContent = text;
  }

  static #printed({ lines, text }) {
    const kept = text.split("\n").length;
    const last = kept < lines ? `, of which the last ${kept} are here` : "";
    return `The run printed ${LabWords.counted(lines, "line")}${last}`;
  }

  static #forecast(forecast) {
    if (!forecast) return "";
    const { step_seconds, samples_per_second, communication_share, best_num_gpus } = forecast;
    const [low, high] = forecast.error.map(LabWords.signed);
    return (
      `Forecast (modelled): ${LabWords.milliseconds(step_seconds)} a step, ` +
      `${LabWords.number(samples_per_second)} samples/s, ` +
      `${LabWords.percent(communication_share, 1)} of the step communication. For this batch ` +
      `the step is shortest on ${LabWords.counted(best_num_gpus, "device")}. ` +
      `Known error of such forecasts: ${low} to ${high}.`
    );
  }
}
