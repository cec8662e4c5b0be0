// What each worker runs: one device with its replica, its pieces of every batch, and the allreduce.
//
// training.js makes the text of this function into a worker: a file could not be one on a page that
// is opened from a disk. `plain` is the kernels' function where WebAssembly cannot be had.
globalThis.TrainingDevice = function (plain) {
  "use strict";
  const PIECES = 8;
  const PAUSE = 50; // milliseconds between two reports: twenty a second
  const TRAIN = 6000, TEST = 1000;

  /** The other devices, each at the end of a port. What they send waits until it is asked for. */
  class Peers {
    constructor(ports) {
      this.ports = ports;
      this.sent = 0; // bytes
      this.letters = []; // { from, buffer }, in the order in which they came
      this.asked = null; // { from, resolve }: the one for whom the device waits
      this.spare = new Map(); // bytes -> a buffer that has been read: the next to be sent
      ports.forEach((port, from) => {
        if (port) port.onmessage = ({ data }) => this.arrived({ from, buffer: data });
      });
    }

    send(to, floats) {
      const buffer = this.spare.get(floats.byteLength) ?? new ArrayBuffer(floats.byteLength);
      this.spare.delete(floats.byteLength);
      new Float32Array(buffer).set(floats);
      this.ports[to].postMessage(buffer, [buffer]);
      this.sent += floats.byteLength;
    }

    /** Copy what the device `from` sent next, or (null) whichever sent first, to `into`. */
    async receive(from, into) {
      const fits = (letter) => from === null || letter.from === from;
      const at = this.letters.findIndex(fits);
      const { buffer } = at >= 0
        ? this.letters.splice(at, 1)[0]
        : await new Promise((resolve) => { this.asked = { fits, resolve }; });
      into.set(new Float32Array(buffer));
      this.spare.set(buffer.byteLength, buffer);
    }

    arrived(letter) {
      const { asked } = this;
      if (!asked?.fits(letter)) return this.letters.push(letter);
      this.asked = null;
      asked.resolve(letter);
    }
  }

  /** A replica, the sum of this device's pieces, and a place for what comes in from another one. */
  class Device {
    constructor({ rank, settings, module, data, ports, layers }) {
      Object.assign(this, { rank, settings, peers: new Peers(ports) });
      this.kernels = load(module);
      const { memory, place_of_data, place_of_gradient, start } = this.kernels;
      new Uint8Array(memory.buffer).set(data, place_of_data());
      this.size = start(layers, settings.seed) + 2; // the loss and the right answers ride along
      this.sum = new Float32Array(memory.buffer, place_of_gradient(0), this.size);
      this.incoming = new Float32Array(memory.buffer, place_of_gradient(1), this.size);
      this.seconds = this.samples = 0;
    }

    /** Sum `count` pieces of `rows` images in pairs, as the devices go on to do with their sums. */
    pieces(first, count, rows, slot) {
      const { piece, add, place_of_gradient } = this.kernels;
      if (count === 1) return piece(first, rows, slot);
      this.pieces(first, count / 2, rows, slot);
      this.pieces(first + rows * count / 2, count / 2, rows, slot + 1);
      add(place_of_gradient(slot), place_of_gradient(slot + 1), this.size);
    }

    send(to, from = 0, end = this.size) {
      this.peers.send(to, this.sum.subarray(from, end));
    }

    async copyFrom(peer, from = 0, end = this.size) {
      await this.peers.receive(peer, this.sum.subarray(from, end));
    }

    async addFrom(peer, from = 0, end = this.size) {
      await this.peers.receive(peer, this.incoming.subarray(from, end));
      const [into, what] = [this.sum, this.incoming].map((floats) => floats.byteOffset + 4 * from);
      this.kernels.add(into, what, end - from);
    }

    /** Pairs of devices swap their sums, then pairs of pairs: the order in which pieces are added. */
    async tree() {
      for (let far = 1; far < this.settings.devices; far *= 2) {
        this.send(this.rank ^ far);
        await this.addFrom(this.rank ^ far);
      }
    }

    /** Device 0 adds what comes, as it comes, and sends the sum back. */
    async one() {
      const others = Array.from({ length: this.settings.devices - 1 }, (_, i) => i + 1);
      if (this.rank > 0) {
        this.send(0);
        return this.copyFrom(0);
      }
      for (const _ of others) await this.addFrom(null);
      for (const other of others) this.send(other);
    }

    /** Chunks go round and are added, then the finished chunks go round. */
    async ring() {
      const { size, rank, settings: { devices } } = this;
      const edge = (i) => Math.floor(size * i / devices);
      const chunk = (i) => [edge((i + devices) % devices), edge((i + devices) % devices + 1)];
      const next = (rank + 1) % devices, previous = (rank + devices - 1) % devices;
      for (let round = 0; round < devices - 1; round++) {
        this.send(next, ...chunk(rank - round));
        await this.addFrom(previous, ...chunk(rank - round - 1));
      }
      for (let round = 0; round < devices - 1; round++) {
        this.send(next, ...chunk(rank + 1 - round));
        await this.copyFrom(previous, ...chunk(rank - round));
      }
    }

    /** One pass over the training images, and this device's share of the test images. */
    async epoch(epoch) {
      const { devices, batchSize, lr, seed, algorithm } = this.settings;
      const { shuffle, update, known } = this.kernels;
      const mine = PIECES / devices;
      let report = this.report(epoch), last = performance.now();
      shuffle(seed, epoch);
      for (let first = 0; first < TRAIN; first += batchSize) {
        const batch = Math.min(batchSize, TRAIN - first), rows = batch / PIECES;
        this.pieces(first + this.rank * mine * rows, mine, rows, 0);
        const computed = performance.now();
        if (devices > 1) await this[algorithm]();
        report.exchange += performance.now() - computed;
        update(lr / batch);
        report.losses.push(this.sum[this.size - 2] / batch);
        report.correct = this.sum[this.size - 1] / batch;
        const now = performance.now();
        report.busy += now - last;
        this.samples += batch;
        last = now;
        if (report.busy >= PAUSE || first + batch === TRAIN) {
          this.post(report);
          report = this.report(epoch);
        }
      }
      const test = TEST / devices;
      postMessage({ kind: "epoch", epoch, known: known(this.rank * test, test) });
    }

    report(epoch) {
      return { kind: "steps", epoch, losses: [], correct: 0, busy: 0, exchange: 0 };
    }

    post(report) {
      this.seconds += report.busy / 1000;
      postMessage({ ...report, seconds: this.seconds, samples: this.samples, sent: this.peers.sent });
    }
  }

  function load(module) {
    try {
      return module ? new WebAssembly.Instance(module).exports : plain();
    } catch (error) {
      const what = `there is no memory for its replica (${error.message})`;
      throw new Error(`${what}; choose fewer devices or close other pages`);
    }
  }

  let device = null;
  const fail = (message) => postMessage({ kind: "failed", message });
  onmessageerror = () => fail("it cannot read what the page has sent");
  onmessage = async ({ data }) => {
    try {
      if (data.kind === "begin") {
        device = new Device(data);
        postMessage({ kind: "ready" });
      } else {
        await device.epoch(data.epoch);
      }
    } catch (error) {
      fail(error.message);
    }
  };
};
