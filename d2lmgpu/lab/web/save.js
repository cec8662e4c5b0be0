// What the reader takes along: the runs, the chart, and the cell that makes the run again.
"use strict";

class LabSave {
  static WORDS = {
    csv: "Runs as CSV", json: "Runs as a record", png: "Chart as PNG", svg: "Chart as SVG",
  };

  constructor(root, source, curves) {
    Object.assign(this, { root, source, curves });
    root.innerHTML = `
      <p class="lab-buttons lab-files"></p>
      <details class="lab-cell"><summary>A cell that makes this run again</summary>
        <pre></pre><button type="button" class="lab-copy">Copy</button>
        <span role="status"></span></details>`;
    this.buttons = root.querySelector(".lab-files");
    this.cell = root.querySelector(".lab-cell");
    this.buttons.addEventListener("click", ({ target }) => this.#save(target.dataset.file));
    root.querySelector(".lab-copy").addEventListener("click", () => this.#copy());
  }

  show(any) {
    const charts = any ? ["training-lab.png", "training-lab.svg"] : [];
    const names = [...Object.keys(this.source.get("files") ?? {}), ...charts];
    const buttons = names.map((name) => {
      const words = LabSave.WORDS[name.split(".").at(-1)];
      return `<button type="button" data-file="${name}">${words}</button>`;
    });
    if (names.join() !== this.names) this.buttons.innerHTML = buttons.join("");
    this.names = names.join();
    const { cell } = this.source.get("about") ?? {};
    this.cell.hidden = !cell;
    this.cell.querySelector("pre").textContent = cell ?? "";
  }

  async #save(name) {
    if (!name) return;
    if (name.endsWith(".png")) return LabSave.#download(name, await this.#png());
    const colour = (of) => this.curves.chart.colour(of);
    const text = name.endsWith(".svg")
      ? LabSvg.text(this.curves.picture(), colour) : this.source.get("files")[name];
    return LabSave.#download(name, new Blob([text], { type: "text/plain" }));
  }

  /** The chart as it is on the screen, on the page's ground. */
  #png() {
    const drawn = this.curves.plot.querySelector("canvas");
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [drawn.width, drawn.height];
    const ctx = copy.getContext("2d");
    ctx.fillStyle = this.curves.chart.colour("ground");
    ctx.fillRect(0, 0, copy.width, copy.height);
    ctx.drawImage(drawn, 0, 0);
    return new Promise((resolve) => copy.toBlob(resolve));
  }

  static #download(name, blob) {
    const href = URL.createObjectURL(blob);
    Object.assign(document.createElement("a"), { href, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  }

  async #copy() {
    const status = this.cell.querySelector("span");
    const cell = this.cell.querySelector("pre");
    try {
      await navigator.clipboard.writeText(cell.textContent);
      status.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(cell);
      status.textContent =
        "This page may not copy: the cell is selected, copy it with the keyboard.";
    }
  }
}
