// The reader's runs as a table, which can be saved and cleared.
class TrainingTable {
  static COLUMNS = [
    "Run", "Network", "Devices", "Allreduce", "Batch", "Learning rate", "Epochs", "Samples/s",
    "Speedup", "Test accuracy", "Difference",
  ];
  static HTML = `
    <div class="training-table" tabindex="0" role="region" aria-label="Your runs"><table>
      <caption>Your runs, kept while this tab is open</caption>
      <thead><tr>${TrainingTable.COLUMNS.map((name) => `<th scope="col">${name}</th>`).join("")}</tr></thead>
      <tbody></tbody>
    </table></div>
    <p class="training-buttons">
      <button type="button" class="training-csv">Download as CSV</button>
      <button type="button" class="training-clear">Clear</button>
    </p>
    <p class="training-small"><span></span> Images: Fashion-MNIST, 6,000 to train with and 1,000 to
      test, at 16 grey levels (© 2017 Zalando SE, MIT licence).</p>`;

  constructor(root, runs, cleared) {
    this.root = root;
    this.runs = runs;
    root.innerHTML = TrainingTable.HTML;
    this.clear = root.querySelector(".training-clear");
    root.querySelector(".training-csv").addEventListener("click", () => this.#save());
    this.clear.addEventListener("click", () => {
      runs.clear();
      this.show();
      cleared();
    });
    this.show();
  }

  show() {
    const { list } = this.runs;
    this.root.hidden = list.length === 0;
    this.root.querySelector("tbody").innerHTML = list.map((run) => this.#row(run)).join("");
    if (list.length) {
      this.root.querySelector("span").textContent = TrainingWords.measured(list.at(-1));
    }
  }

  #row(run) {
    const { rate, speedup, accuracy, difference } = TrainingWords.numbers(run, this.runs);
    const cells = [
      TrainingWords.network(run), run.devices,
      run.devices > 1 ? TrainingWords.ALGORITHMS[run.algorithm] : "–", run.batchSize, run.lr,
      run.epochs, rate, speedup, accuracy, difference,
    ];
    const name = `<i class="${TrainingCharts.colour(run, this.runs.list)}"></i>${run.number}`;
    return `<tr><th scope="row">${name}</th>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`;
  }

  #save() {
    const href = URL.createObjectURL(new Blob([this.runs.csv()], { type: "text/csv" }));
    Object.assign(document.createElement("a"), { href, download: "my-runs.csv" }).click();
    URL.revokeObjectURL(href);
  }
}
