// The panel: settings, Run and Stop, what is measured while it runs, and the table of the runs.
(() => {
  "use strict";
  const vendor = new URL("../vendor/", document.currentScript.src);

  const NOW = {
    rate: "samples/s", speedup: "speedup over one device",
    difference: "largest difference of the losses from one device", accuracy: "test accuracy",
    loss: "loss", share: "of an update is allreduce", bytes: "sent by all devices",
  };

  const PARTS = {
    intro: `
      <p>Here your browser trains a real network: each device is a thread, and the threads add up
        their gradients as GPUs do. The first run loads 1.4 MB of images and code from this
        site; nothing leaves your machine.</p>`,
    buttons: `
      <p class="training-buttons">
        <button type="button" class="training-pair"></button>
        <button type="button" class="training-contrast">Shorter steps: softmax regression, batch 16</button>
        <button type="submit" class="training-run">Run</button>
        <button type="button" class="training-stop" disabled>Stop</button>
      </p>`,
    settings: `
      <details class="training-settings">
        <summary>Settings: <span></span></summary>
        <div class="training-fields"></div>
      </details>`,
    status: `
      <p class="training-small training-untried">Training in a page has not been tried in this browser:
        Chromium and Firefox on a computer have. It may work all the same.</p>
      <p class="training-said" role="status"></p>
      <p class="training-error" role="alert" hidden></p>`,
    more: `
      <div class="training-live" hidden>
        <progress value="0" aria-label="Progress of the run"></progress>
        <dl></dl>
        <fieldset class="training-over">
          <legend>Curves over</legend>
          <div>
            <label><input type="radio" value="epochs" checked><span>epochs</span></label>
            <label><input type="radio" value="seconds"><span>seconds</span></label>
          </div>
        </fieldset>
        <div class="training-charts">
          <figure class="training-loss">
            <figcaption>Loss of each batch</figcaption><div class="lab-plot" role="img"></div><p></p>
          </figure>
          <figure class="training-accuracy">
            <figcaption>Test accuracy</figcaption><div class="lab-plot" role="img"></div><p></p>
          </figure>
        </div>
      </div>
      <div class="training-kept" hidden></div>`,
  };
  const plain = ({ intro, buttons, settings, status, more }) =>
    `<form novalidate>${intro}${buttons}${settings}</form>${status}${more}`;

  const { userAgent } = navigator;
  const TRIED = /Chrome|Firefox/.test(userAgent) && !/Mobi|Android/.test(userAgent);

  class Panel {
    constructor(root, place) {
      const find = (selector) => root.querySelector(selector);
      const isRace = "race" in root.dataset;
      root.innerHTML = (isRace ? TrainingRace.html : plain)(PARTS);
      if (TRIED) find(".training-untried").remove();
      this.settings = new TrainingSettings(root, root.dataset);
      this.runs = new TrainingRuns();
      this.race = isRace ? new TrainingRace(root) : null;
      this.form = find("form");
      const names = ["pair", "run", "stop", "contrast"];
      this.buttons = names.map((name) => find(`.training-${name}`));
      const [, run, , contrast] = this.buttons;
      contrast.hidden = true; // until there is something to contrast it with
      run.hidden = isRace;
      this.parts = {
        status: find(".training-said"), error: find(".training-error"), live: find(".training-live"),
        progress: find("progress"), now: find("dl"),
      };
      const over = [...root.querySelectorAll(".training-over input")];
      for (const input of over) input.name = `training-over-${place}`;
      this.over = () => over.find((input) => input.checked).value;
      find(".training-over").addEventListener("change", () => this.charts?.update());
      this.table = new TrainingTable(find(".training-kept"), this.runs, () => {
        this.charts?.show([]);
        this.buttons[0].focus();
      });
      this.#listen();
      root.dataset.ready = "";
    }

    #listen() {
      const [pair, , stop, contrast] = this.buttons;
      this.form.addEventListener("submit", (event) => {
        event.preventDefault();
        this.#work([this.settings.read()]);
      });
      pair.addEventListener("click", () => this.#compare());
      contrast.addEventListener("click", () => {
        this.settings.choose({ network: "softmax", batchSize: 16, epochs: 30 });
        this.#compare();
      });
      stop.addEventListener("click", () => {
        this.stopped = true;
        this.running?.stop();
      });
    }

    /** The same training on one device and on several. */
    #compare() {
      const chosen = this.settings.read();
      this.race?.begin(this.settings.several);
      this.#work([1, this.settings.several].map((devices) => ({ ...chosen, devices })));
    }

    /** One run after the other, with all that belongs around them. */
    async #work(all) {
      const from = document.activeElement;
      const stop = this.buttons[2];
      this.stopped = false;
      this.racing = this.race !== null && all.length > 1;
      this.parts.error.hidden = true;
      this.#enable(false);
      if (this.form.contains(from)) stop.focus({ preventScroll: true });
      try {
        await this.#load();
        let run;
        for (const settings of all) if (!this.stopped) run = await this.#train(settings);
        if (run) this.#say(this.#verdict(run, all));
        else this.#say("");
        if (this.racing) this.#endRace();
      } catch (error) {
        this.#say("");
        this.parts.error.textContent = error.message;
        this.parts.error.hidden = false;
      }
      const left = [stop, document.body].includes(document.activeElement);
      this.#enable(true);
      if (left) from.focus({ preventScroll: true }); // a reader who went elsewhere stays there
    }

    /** The outcome of a comparison; after the first one a case in which two may not pay. */
    #endRace() {
      this.race.end(this.runs);
      this.buttons.at(-1).hidden = false;
    }

    #verdict(run, all) {
      const finished = run.how === "finished" && all.length > 1;
      return TrainingWords[finished ? "compared" : "ended"](run, this.runs);
    }

    async #load() {
      if (this.charts) return;
      this.#say("Loading the images and the code …");
      await Promise.all([
        Training.load(),
        load("link", { rel: "stylesheet", href: new URL("uPlot.min.css", vendor) }),
        load("script", { src: new URL("uPlot.iife.min.js", vendor) }),
      ]);
      this.parts.live.hidden = false;
      this.charts = new TrainingCharts(this.parts.live, this.over);
    }

    async #train(settings) {
      const run = TrainingRuns.begin(settings);
      this.running = Training.start(settings, (event) => {
        TrainingRuns.note(run, event);
        this.#draw(run);
      });
      this.#say(`Training: ${TrainingWords.settings(settings)} …`);
      this.runs.add(run);
      this.charts.show(this.runs.list);
      const { how, message } = await this.running.done;
      this.running = null;
      if (!run.losses.length || how === "failed") this.runs.list.pop();
      this.#show(run);
      this.charts.show(this.runs.list);
      this.runs.save();
      this.table.show();
      if (how === "failed") throw Error(message);
      return run;
    }

    /** At most once a frame; in a hidden tab there are no frames, and nothing waits for one. */
    #draw(run) {
      this.frame ??= requestAnimationFrame(() => {
        this.frame = null;
        if (run.how === "running") {
          this.charts.update();
          this.#show(run);
        }
      });
    }

    #show(run) {
      if (this.racing) this.race.show(run);
      const numbers = TrainingWords.numbers(run, this.runs);
      Object.assign(this.parts.progress, {
        max: run.steps * run.epochs || 1,
        value: run.updates.at(-1) ?? 0,
      });
      this.parts.now.innerHTML = Object.entries(NOW)
        .map(([name, text]) => `<div><dt>${text}</dt><dd>${numbers[name]}</dd></div>`)
        .join("");
    }

    #say(text) {
      this.parts.status.textContent = text;
    }

    #enable(idle) {
      const [pair, run, stop, contrast] = this.buttons;
      for (const button of [pair, run, contrast, this.table.clear]) button.disabled = !idle;
      stop.disabled = idle;
    }
  }

  function load(tag, properties) {
    return new Promise((resolve, reject) => {
      const element = document.createElement(tag);
      const from = properties.src ?? properties.href;
      const missing = Error(`${from} could not be loaded: is the network there? Then press Run again.`);
      Object.assign(element, properties, { onload: resolve, onerror: () => reject(missing) });
      document.head.append(element);
    });
  }

  document.querySelectorAll(".training").forEach((root, place) => new Panel(root, place));
})();
