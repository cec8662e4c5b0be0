// Training in the page: each device is a worker on a core of the reader's machine. The only door.
//
//   await Training.load();
//   const run = Training.start({ network: "lenet", devices: 2, batchSize: 256, lr: 0.1, epochs: 5,
//                               algorithm: "tree", seed: 0 }, (event) => …);
//   const { how, losses, epochs } = await run.done;      // or run.stop(); run.losses grows
//
// Beside this file lie device.js, code.js and images.js, which are loaded when they are first needed:
// as scripts, because a page that was opened from a disk may load nothing else.
globalThis.Training = (() => {
  "use strict";
  const SCRIPT = document.currentScript.src;
  const TRAIN = 6000, TEST = 1000, BYTES = (TRAIN + TEST) * (1 + 28 * 28 / 2);
  const NETWORKS = {
    lenet: { name: "LeNet", layers: 4, parameters: 129068, defaultLr: 0.1 },
    mlp: { name: "MLP 784-128-10", layers: 2, parameters: 101770, defaultLr: 0.1 },
    softmax: { name: "Softmax regression", layers: 1, parameters: 7850, defaultLr: 0.1 },
  };
  const whole = (low, high) => (x) => Number.isInteger(x) && x >= low && x <= high;
  const oneOf = (values) => (x) => values.includes(x);
  const ALLOWED = {
    network: [oneOf(Object.keys(NETWORKS)), `one of ${Object.keys(NETWORKS).join(", ")}`],
    devices: [oneOf([1, 2, 4, 8]), "1, 2, 4 or 8"],
    batchSize: [(x) => whole(16, 1024)(x) && x % 8 === 0, "a multiple of 8 from 16 to 1024"],
    lr: [(x) => Number.isFinite(x) && x > 0, "a number above 0"],
    epochs: [whole(1, 1000), "a whole number from 1 to 1000"],
    algorithm: [oneOf(["tree", "one", "ring"]), "tree, one or ring"],
    seed: [whole(0, 2 ** 32 - 1), "a whole number from 0 to 2**32 - 1"],
  };

  let loading = null; // the promise of what is loaded
  let loaded = null; // { module, why, url, data }
  let running = null; // the run that goes on: two at once would share the cores

  function check(settings) {
    for (const [name, [allowed, words]] of Object.entries(ALLOWED)) {
      const given = settings[name];
      if (!allowed(given)) throw new Error(`${name}=${JSON.stringify(given)}: give ${words}.`);
    }
    const names = Object.keys(ALLOWED);
    const other = Object.keys(settings).find((name) => !names.includes(name));
    if (other) throw new Error(`There is no setting ${other}; there are ${names.join(", ")}.`);
  }

  /** The script beside this one, which leaves `name` behind. */
  function script(file, name) {
    return new Promise((resolve, reject) => {
      const element = document.createElement("script");
      const arrived = () => {
        element.remove();
        if (globalThis[name]) resolve(globalThis[name]);
        else reject(new Error(`${file} could not be loaded: check the connection, and try again.`));
      };
      element.src = new URL(file, SCRIPT).href;
      element.onload = element.onerror = arrived;
      document.head.append(element);
    });
  }

  const bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

  async function images(text) {
    try {
      const deflated = new Blob([bytes(text)]).stream();
      const stream = deflated.pipeThrough(new DecompressionStream("deflate"));
      const data = new Uint8Array(await new Response(stream).arrayBuffer());
      if (data.length !== BYTES) throw new Error(`${data.length} bytes`);
      return data;
    } catch (error) {
      const what = `The images in images.js cannot be read (${error.message})`;
      throw new Error(`${what}: load the page anew, or take a newer browser.`);
    }
  }

  /** Fetch images and code, if they are not here yet. */
  function load() {
    loading ??= fetchAll().catch((error) => {
      loading = null;
      throw error;
    });
    return loading;
  }

  async function fetchAll() {
    const [device, code, text] = await Promise.all([
      script("device.js", "TrainingDevice"),
      script("code.js", "TrainingCode"),
      script("images.js", "TrainingImages"),
    ]);
    let module = null, why = null;
    try {
      module = await WebAssembly.compile(bytes(code.simd));
    } catch (error) {
      why = `WebAssembly with SIMD cannot be had (${error.message}), so plain JavaScript computes`;
    }
    const source = `(${device})(${module ? "" : code.plain})`;
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    loaded = { module, why, url, data: await images(text) };
  }

  class Run {
    constructor(settings, listen) {
      Object.assign(this, { settings: { ...settings }, listen });
      Object.assign(this, { workers: [], losses: [], epochs: [], over: false });
      this.done = new Promise((resolve) => { this.settle = resolve; });
      this.sent = Array(settings.devices).fill(0);
      this.recent = [{ seconds: 0, samples: 0 }]; // device 0's reports of the last second
      this.waiting = settings.devices; // devices that are not ready, or not at the epoch's end
      this.hide = () => { this.hidden ||= document.hidden; };
      this.stop = () => this.end("stopped");
      document.addEventListener("visibilitychange", this.hide);
      addEventListener("pagehide", this.stop);
      this.hire().catch((error) => this.cannotStart(error.message));
    }

    /** Start the workers, with a channel between any two of them. */
    async hire() {
      const { devices, network } = this.settings;
      const ports = Array.from({ length: devices }, () => Array(devices).fill(null));
      for (let i = 0; i < devices; i++)
        for (let j = 0; j < i; j++) {
          const channel = new MessageChannel();
          [ports[i][j], ports[j][i]] = [channel.port1, channel.port2];
        }
      for (let rank = 0; rank < devices; rank++) {
        const worker = new Worker(loaded.url);
        this.workers.push(worker);
        worker.onmessage = ({ data }) => this.over || this[data.kind](data, rank);
        worker.onerror = (event) => {
          event.preventDefault();
          if (event.message) this.failed(event, rank);
          else this.cannotStart("the browser gives no reason");
        };
        const begin = {
          kind: "begin", rank, settings: this.settings, module: loaded.module, data: loaded.data,
          ports: ports[rank], layers: NETWORKS[network].layers,
        };
        worker.postMessage(begin, ports[rank].filter(Boolean));
      }
    }

    ready() {
      if (--this.waiting) return;
      this.emit("start", {
        devices: this.settings.devices, cores: Training.cores, simd: loaded.module !== null,
        plain: loaded.module === null, why: loaded.why, samples: TRAIN,
        steps: Math.ceil(TRAIN / this.settings.batchSize),
      });
      if (!this.over) this.begin(0);
    }

    begin(epoch) {
      this.known = this.busy = this.exchange = 0;
      this.waiting = this.settings.devices;
      this.hidden = document.hidden;
      for (const worker of this.workers) worker.postMessage({ kind: "epoch", epoch });
    }

    steps({ epoch, losses, correct, busy, exchange, seconds, samples, sent }, rank) {
      this.sent[rank] = sent;
      if (rank > 0) return;
      this.losses.push(...losses);
      this.busy += busy;
      this.exchange += exchange;
      this.recent.push({ seconds, samples });
      while (this.recent.length > 2 && this.recent[1].seconds < seconds - 1) this.recent.shift();
      const before = this.recent[0];
      this.emit("step", {
        step: this.losses.length, epoch: epoch + 1, loss: losses.at(-1), correct, seconds, samples,
        samplesPerSecond: (samples - before.samples) / (seconds - before.seconds),
        exchangeShare: busy && exchange / busy, bytes: this.bytes(),
      });
    }

    epoch({ epoch, known }) {
      this.known += known;
      if (--this.waiting) return;
      const event = {
        epoch: epoch + 1, testAccuracy: this.known / TEST, hidden: this.hidden,
        samplesPerSecond: 1000 * TRAIN / this.busy, exchangeShare: this.exchange / this.busy,
        bytes: this.bytes(),
      };
      this.epochs.push(event);
      this.emit("epoch", event);
      if (epoch + 1 === this.settings.epochs) this.end("finished");
      else if (!this.over) this.begin(epoch + 1); // else the listener has stopped the run
    }

    bytes() {
      return this.sent.reduce((a, b) => a + b);
    }

    failed({ message }, rank) {
      this.end("failed", `Device ${rank} failed: ${message}.`);
    }

    cannotStart(reason) {
      const policy = 'Where a content policy is set, it must allow "worker-src blob:".';
      this.end("failed", `No worker could be started (${reason}). ${policy}`);
    }

    end(how, message) {
      if (this.over) return;
      this.over = true;
      for (const worker of this.workers.splice(0)) worker.terminate();
      document.removeEventListener("visibilitychange", this.hide);
      removeEventListener("pagehide", this.stop);
      running = null;
      const outcome = { how, message, losses: this.losses, epochs: this.epochs };
      this.settle(outcome);
      this.emit("end", outcome);
    }

    /** An error of the listener is the page's, to be seen there; the run goes on. */
    emit(type, event) {
      try {
        this.listen({ type, ...event });
      } catch (error) {
        setTimeout(() => { throw error; });
      }
    }
  }

  /** Train in the background; `listen` hears of it. Throws for settings that are not allowed. */
  function start(settings, listen) {
    check(settings);
    if (!loaded) throw new Error("Images and code are not here: wait for Training.load() first.");
    if (running) throw new Error("Another run in this page would share the cores: stop it first.");
    running = new Run(settings, listen);
    return { stop: running.stop, done: running.done, losses: running.losses };
  }

  return { networks: NETWORKS, cores: navigator.hardwareConcurrency || null, load, start };
})();
