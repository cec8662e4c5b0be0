// The reader's runs: kept while the tab is open, and compared with a run on one device.
class TrainingRuns {
  static KEY = "d2lmgpu-training-runs";
  static MOST = 1.05; // efficiency: what is above is neither noise nor parallel work
  static TRAINING = ["network", "batchSize", "lr", "epochs", "seed"]; // what the losses depend on

  constructor() {
    this.list = this.#read();
  }

  /** A run that begins: the settings, and room for what is measured. */
  static begin(settings) {
    return {
      ...settings, how: "running", cores: null, simd: true, steps: 0, hidden: false,
      updates: [], seconds: [], losses: [], samples: 0, bytes: 0, exchange: 0, accuracies: [],
      pace: [], // [seconds, samples] from each report to the next
    };
  }

  /** What the engine tells, added to the run. */
  static note(run, event) {
    if (event.type === "start") {
      Object.assign(run, { cores: event.cores, simd: event.simd, steps: event.steps });
    } else if (event.type === "step") {
      // A report stands for all updates since the last one.
      const from = run.seconds.length;
      const start = run.seconds.at(-1) ?? 0;
      const each = (event.seconds - start) / (event.step - from);
      for (let made = from; made < event.step; made += 1) {
        run.seconds.push(start + each * (made + 1 - from));
      }
      run.pace.push([event.seconds - start, event.samples - run.samples]);
      run.exchange += event.exchangeShare * (event.step - from);
      run.updates.push(event.step);
      run.losses.push(event.loss);
      Object.assign(run, { samples: event.samples, bytes: event.bytes });
    } else if (event.type === "epoch") {
      run.accuracies.push(event.testAccuracy);
      run.hidden ||= event.hidden;
    } else if (event.type === "end") {
      run.how = event.how;
      run.losses = event.losses; // of every update, not only of those that were reported
      run.updates = event.losses.map((_, index) => index + 1);
    }
  }

  static rate(run) {
    return run.samples / run.seconds.at(-1);
  }

  /** The mean share of an update that device 0 spends in the allreduce. */
  static exchangeShare(run) {
    return run.exchange / run.seconds.length;
  }

  static unsteady(run) {
    return TrainingSteady.unsteady(run.pace);
  }

  /** Whether a loss was not finite, or rose far above the first and the accuracy is chance. */
  static diverged({ losses, accuracies }) {
    if (!losses.every(Number.isFinite)) return true;
    return accuracies.at(-1) <= 0.2 && losses.some((loss) => loss > 1.5 * losses[0]);
  }

  /** Whether devices share a core, as far as the browser tells how many there are. */
  static shared({ devices, cores }) {
    return devices > (cores ?? 1);
  }

  /** The finished run on one device before this one that was the same training, else one after. */
  reference(run, wanted = () => true) {
    const same = this.list.filter(
      (other) =>
        other !== run &&
        other.devices === 1 &&
        other.how === "finished" &&
        TrainingRuns.TRAINING.every((name) => other[name] === run[name]) &&
        wanted(other),
    );
    return same.findLast((other) => other.number < run.number) ?? same[0];
  }

  /** How many times as fast as one device, or in `why` what keeps us from saying so: the rule of
      d2lmgpu/records/speedup.py. */
  speedup(run) {
    if (run.devices === 1) return { why: "reference" };
    if (TrainingRuns.shared(run)) return { why: "shared cores" };
    if (run.hidden) return { why: "tab was hidden" };
    const single = this.reference(run, (other) => !other.hidden);
    if (!single) return { why: this.reference(run) ? "tab was hidden" : "no run on one device" };
    if (!run.losses.length || run.how === "stopped") return { why: "not finished" };
    if (TrainingRuns.unsteady(run) || TrainingRuns.unsteady(single)) return { why: "unsteady" };
    const times = TrainingRuns.rate(run) / TrainingRuns.rate(single);
    return times > TrainingRuns.MOST * run.devices ? { why: "not explained" } : { times };
  }

  /** The largest difference of the losses from one device's, over the updates that both made. */
  difference(run) {
    const single = run.devices > 1 && this.reference(run);
    if (!single || !run.losses.length) return null;
    const others = run.updates.map((update) => single.losses[update - 1]);
    if (run.losses.every((loss, index) => Object.is(loss, others[index]))) return 0;
    return Math.max(...run.losses.map((loss, index) => Math.abs(loss - others[index])));
  }

  add(run) {
    run.number = (this.list.at(-1)?.number ?? 0) + 1;
    this.list.push(run);
  }

  clear() {
    this.list = [];
    this.save();
  }

  /** Other pages of this tab read them. Where the browser keeps nothing they stay in this page. */
  save() {
    // As text, because JSON has no NaN: a run that diverged is a run, too.
    const text = (run) => ({ ...run, losses: run.losses.join(" ") });
    const done = this.list.filter((run) => run.how !== "running");
    try {
      sessionStorage.setItem(TrainingRuns.KEY, JSON.stringify(done.map(text)));
    } catch {}
  }

  #read() {
    const numbers = (run) => ({ ...run, losses: run.losses.split(" ").map(Number) });
    try {
      return JSON.parse(sessionStorage.getItem(TrainingRuns.KEY) ?? "[]").map(numbers);
    } catch {
      return [];
    }
  }

  csv() {
    const columns = {
      run: (run) => run.number,
      network: (run) => run.network,
      devices: (run) => run.devices,
      cores: (run) => run.cores,
      algorithm: (run) => run.algorithm,
      batch_size: (run) => run.batchSize,
      lr: (run) => run.lr,
      epochs: (run) => run.epochs,
      seed: (run) => run.seed,
      end: (run) => run.how,
      hidden: (run) => run.hidden,
      unsteady: TrainingRuns.unsteady,
      diverged: TrainingRuns.diverged,
      simd: (run) => run.simd,
      samples_per_second: TrainingRuns.rate,
      speedup: (run) => this.speedup(run).times,
      exchange_share: TrainingRuns.exchangeShare,
      bytes: (run) => run.bytes,
      test_accuracy: (run) => run.accuracies.at(-1),
      largest_difference: (run) => this.difference(run),
    };
    const rows = this.list.map((run) => Object.values(columns).map((cell) => cell(run) ?? ""));
    return [Object.keys(columns), ...rows].map((row) => `${row.join(",")}\n`).join("");
  }
}
