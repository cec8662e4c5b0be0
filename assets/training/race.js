// One question and its answer: how many times as fast are two devices as one? A guess, then two bars
// that grow as they train, and the outcome in large type with what an update was made of.
class TrainingRace {
  static LEAST = 0.5; // of the guess; the lane of one device is as long as that of two would be then
  static MOST = 2;

  /** The parts of the panel in their order; `buttons`, `said`, `settings` and `more` are its own. */
  static html({ intro, buttons, status, settings, more }) {
    return `
      <form novalidate>
        <div class="race">
          <label class="race-guess"><b><span></span>: how many times as fast as one?</b>
            <span>Guess <input type="range" min="${TrainingRace.LEAST}" max="${TrainingRace.MOST}" step="0.05"
              value="1"><output></output></span></label>
          <p class="race-what">Trains here and now, in your browser: each device is a thread, on a CPU core
            of its own where one is free. On two idle cores it takes about 20 seconds.</p>
          ${buttons}
          <div class="race-lanes" role="img" aria-label="Nothing has run yet">
            <p><span></span><i class="race-one"></i><b></b></p>
            <p><span></span><i class="race-two"></i><b></b><u></u></p>
          </div>
          <p class="race-legend"><u></u>as long as you guessed</p>
          <p class="race-verdict"></p>
          ${status}
          <div class="race-why" hidden></div>
        </div>
        <details class="race-more">
          <summary>Settings, curves and your runs</summary>
          ${intro}${settings}${more}
        </details>
      </form>`;
  }

  constructor(root) {
    this.root = root.querySelector(".race");
    const find = (selector) => this.root.querySelector(selector);
    this.slider = find("input");
    this.parts = {
      guess: find("output"), lanes: find(".race-lanes"), verdict: find(".race-verdict"),
      why: find(".race-why"), mark: find("u"),
    };
    this.bars = [".race-one", ".race-two"].map((name) => find(name));
    this.slider.addEventListener("input", () => this.#showGuess());
    this.#showGuess();
    this.#name(2);
  }

  /** How many devices race against one. */
  #name(devices) {
    this.names = [1, devices].map((k) => TrainingWords.capital(TrainingWords.devices(k)));
    this.root.querySelector(".race-guess b span").textContent = this.names[1];
    for (const [place, bar] of this.bars.entries()) {
      bar.previousElementSibling.textContent = this.names[place];
    }
  }

  get guess() {
    return Number(this.slider.value);
  }

  #showGuess() {
    this.parts.guess.textContent = `${this.guess.toFixed(2)} times`;
    this.slider.setAttribute("aria-valuetext", this.parts.guess.textContent);
  }

  /** A comparison of so many devices with one begins. */
  begin(devices) {
    this.#name(devices);
    this.runs = [];
    this.guessed = this.guess;
    this.slider.disabled = true;
    this.parts.verdict.textContent = "";
    this.parts.why.hidden = true;
    for (const bar of this.bars) this.#lane(bar, 0, "");
    this.parts.mark.removeAttribute("style");
  }

  /** A run goes on: its bar is as long as its seconds. */
  show(run) {
    if (!this.runs.includes(run)) this.runs.push(run);
    const seconds = this.runs.map((run) => run.seconds.at(-1) ?? 0);
    const [single, double = 0] = seconds;
    const { how, steps, epochs, updates } = this.runs[0];
    const done = how === "running" ? (updates.at(-1) ?? 0) / (steps * epochs) : 1;
    const whole = done > 0 ? single / done : 1; // of one device, as far as can be told
    const longest = Math.max(whole / TrainingRace.LEAST, double);
    const inWords = (value) => (value ? `${value.toFixed(1)} s` : "");
    this.#lane(this.bars[0], single / longest, inWords(single));
    this.#lane(this.bars[1], double / longest, inWords(double));
    this.parts.mark.style.setProperty("--guess", whole / this.guessed / longest);
  }

  #lane(bar, share, words) {
    bar.style.setProperty("--part", share);
    bar.nextElementSibling.textContent = words;
  }

  /** Both have run, or something ended them. */
  end(runs) {
    this.slider.disabled = false;
    const [single, double] = this.runs;
    const { times, why } = double ? runs.speedup(double) : {};
    const lanes = this.runs.map(
      (run, place) => `${this.names[place]}: ${run.seconds.at(-1)?.toFixed(1)} s`,
    );
    this.parts.lanes.ariaLabel = lanes.join(", ") || "Nothing has run yet";
    if (why === "unsteady") this.parts.verdict.textContent = "Too unsteady to tell: try again";
    if (!times || double.how !== "finished") return;
    const far = this.guessed - times;
    const near = Math.abs(far) < 0.05;
    const judged = near ? "as you guessed" : `you guessed ${this.guessed.toFixed(2)}`;
    const verdict = `${times.toFixed(2)} times as fast`;
    this.parts.verdict.textContent = `${verdict}; ${judged}`;
    this.#explain(single, double);
  }

  /** What an update took on each device, to one scale. */
  #explain(single, double) {
    const step = (run) => (1000 * run.seconds.at(-1)) / run.seconds.length;
    const share = TrainingRuns.exchangeShare(double);
    const [alone, both] = [step(single), step(double)];
    const longest = Math.max(alone, both);
    const part = (kind, ms) => `<i class="race-${kind}" style="width:calc((100% - 6.5rem) * ${ms / longest})"></i>`;
    const lane = (name, ...parts) => `<p><span>${name}</span>${parts.join("")}</p>`;
    const half = part("compute", both * (1 - share)) + part("exchange", both * share);
    const ms = (value) => `${value < 9.5 ? value.toPrecision(value < 1 ? 1 : 2) : Math.round(value)} ms`;
    const gain = alone - both * (1 - share);
    this.parts.why.innerHTML = `
      <div aria-hidden="true">
        ${lane("One device", part("compute", alone))}
        ${[...Array(double.devices).keys()].map((k) => lane(`Device ${k}`, half)).join("")}
      </div>
      <p>An update took ${ms(alone)} on one device. On ${TrainingWords.devices(double.devices)}, each
        <i class="race-key race-compute"></i>computed its part of the batch in
        ${ms(both * (1 - share))}, and <i class="race-key race-exchange"></i>adding up the gradients,
        with the wait for each other, took
        ${ms(both * share)}: ${gain > both * share ? "less" : "more"} than was saved.</p>`;
    this.parts.why.hidden = false;
  }
}
