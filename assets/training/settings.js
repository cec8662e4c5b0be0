// What the reader chooses before a run. The element's data-… attributes say what is chosen first.
class TrainingSettings {
  static DEVICES = [1, 2, 4, 8];
  static BATCH_SIZES = [16, 64, 128, 256, 512, 1024];
  static SEED = 0; // every run starts from the same parameters

  constructor(root, preset) {
    const first = {
      network: "lenet", devices: 2, batchSize: 256, epochs: 3, algorithm: "tree", ...preset,
    };
    this.form = root.querySelector("form");
    this.root = root.querySelector(".training-settings");
    this.root.open = "open" in preset;
    this.root.querySelector(".training-fields").innerHTML = this.#html();
    this.fields = this.form.elements;
    const { network, devices, batchSize, epochs, algorithm } = first;
    this.choose({ network, devices, batchSize, epochs, algorithm });
    if (preset.lr) this.fields.lr.value = preset.lr;
    this.root.addEventListener("input", (event) => {
      if (event.target.name === "network") this.#takeRate();
      this.#show();
    });
    this.#show();
  }

  /** Set some of the fields, and the learning rate of the network. */
  choose(values) {
    for (const [name, value] of Object.entries(values)) this.fields[name].value = value;
    this.#takeRate();
    this.#show();
  }

  /** The settings as the engine wants them; what it does not allow it says itself. */
  read() {
    const number = (name) => Number(this.fields[name].value);
    return {
      network: this.fields.network.value,
      algorithm: this.fields.algorithm.value,
      devices: number("devices"),
      batchSize: number("batchSize"),
      lr: number("lr"),
      epochs: number("epochs"),
      seed: TrainingSettings.SEED,
    };
  }

  /** The number of devices that is compared with one. */
  get several() {
    return Math.max(2, Number(this.fields.devices.value));
  }

  #takeRate() {
    this.fields.lr.value = Training.networks[this.fields.network.value].defaultLr;
  }

  #show() {
    const chosen = { ...this.read(), cores: Training.cores };
    const shared = TrainingRuns.shared(chosen);
    const note = this.root.querySelector(".training-shared");
    this.root.querySelector("summary span").textContent = TrainingWords.settings(chosen);
    note.textContent = shared ? `${TrainingWords.shared(chosen)}: no speedup is told.` : "";
    this.form.querySelector(".training-pair").textContent =
      `One device, then ${TrainingWords.devices(this.several).split(" ")[0]}`;
  }

  #html() {
    const networks = Object.entries(Training.networks).map(([id, { name }]) => [id, name]);
    const devices = TrainingSettings.DEVICES.map((k) => {
      const shared = TrainingRuns.shared({ devices: k, cores: Training.cores });
      return [k, shared ? `${k} <small>shared</small>` : k];
    });
    const batchSizes = TrainingSettings.BATCH_SIZES.map((size) => [size, size]);
    return (
      this.#choice("network", "Network", networks) +
      this.#choice("devices", "Devices", devices) +
      this.#choice("algorithm", "Allreduce", Object.entries(TrainingWords.ALGORITHMS)) +
      this.#choice("batchSize", "Batch size, over all devices", batchSizes) +
      this.#number("lr", "Learning rate", 'step="any" min="0"') +
      this.#number("epochs", "Epochs", 'step="1" min="1"') +
      '<p class="training-shared"></p>'
    );
  }

  #choice(name, legend, options) {
    const radios = options.map(
      ([value, text]) =>
        `<label><input type="radio" name="${name}" value="${value}"><span>${text}</span></label>`,
    );
    return `<fieldset><legend>${legend}</legend><div>${radios.join("")}</div></fieldset>`;
  }

  #number(name, label, limits) {
    return `<label class="training-number">${label}<input type="number" name="${name}" ${limits}></label>`;
  }
}
