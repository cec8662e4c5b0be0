// How many times as fast several devices are: measured, with its spread; modelled; and at best.
"use strict";

class LabSpeedup {
  constructor(root) {
    this.root = root;
    root.innerHTML = `
      <figcaption>Speedup over one device</figcaption>
      <ul class="lab-key"></ul>
      <div class="lab-plot" role="img"></div>
      <p class="lab-pointed"></p>`;
    this.plot = root.querySelector(".lab-plot");
    this.chart = new LabChart(this.plot, (values) => this.#point(values));
  }

  /** Measured rows [{ num_gpus, batch_size, median, low, high }], modelled [[num_gpus, speedup]]. */
  show(measured, modelled) {
    this.root.hidden = !measured.some((row) => row.num_gpus > 1) && !modelled.length;
    if (this.root.hidden) return;
    this.measured = measured;
    const picture = LabSpeedup.picture(measured, modelled);
    this.chart.draw(picture);
    this.root.querySelector(".lab-key").innerHTML = LabSpeedup.#key(picture.lines);
    this.plot.ariaLabel = `Speedup by number of devices: ${this.#inWords(modelled)}`;
  }

  static picture(measured, modelled) {
    const counts = [...measured.map((row) => row.num_gpus), ...modelled.map(([count]) => count)];
    const most = Math.max(2, ...counts);
    const batches = [...new Set(measured.map((row) => row.batch_size))].sort((a, b) => a - b);
    // Batches stand side by side, so that the spread of each can be seen.
    const aside = (batch) => 0.05 * (batches.indexOf(batch) - (batches.length - 1) / 2);
    const lines = measured.map((row) => ({
      name: `row ${row.row}, batch ${row.batch_size.toLocaleString("en")}`,
      colour: String(batches.indexOf(row.batch_size) % 6), width: 0, dots: true,
      points: [[row.num_gpus + aside(row.batch_size), row.median]], spread: [[row.low, row.high]],
    }));
    const dashed = { name: "forecast (modelled)", colour: "ink", dash: true, points: modelled };
    const ideal = { name: "ideal", colour: "muted", width: 1, points: [[1, 1], [most, most]] };
    const highest = Math.max(most, ...measured.map((row) => row.high));
    return {
      x: { label: "devices", range: [0.5, most + 0.5], whole: true },
      y: { label: "times as fast as one", range: [0, LabWords.roundUp(highest)] },
      lines: [ideal, ...(modelled.length ? [dashed] : []), ...lines],
    };
  }

  /** What the marks are: the rows of one batch size share a colour. */
  static #key(lines) {
    const marks = new Map();
    for (const { name, colour, width, dash, dots } of lines) {
      const kind = dots ? "dot" : dash ? "dash" : width === 1 ? "thin" : "line";
      const words = dots ? `measured, ${name.slice(name.indexOf("batch"))}` : name;
      const style = `style="--lab-run: var(--lab-${colour})"`;
      marks.set(words, `<li><i class="lab-mark lab-mark-${kind}" ${style}></i>${words}</li>`);
    }
    return [...marks.values()].join("");
  }

  #point(values) {
    const said = Object.entries(values ?? {})
      .filter(([name]) => name !== "ideal")
      .map(([name, [count, times]]) => {
        return `${name}: ${times.toFixed(2)} on ${LabWords.counted(Math.round(count), "device")}`;
      });
    this.root.querySelector(".lab-pointed").textContent = said.join("; ");
  }

  #inWords(modelled) {
    const measured = this.measured.map((row) => {
      const spread = `${row.low.toFixed(2)} to ${row.high.toFixed(2)}`;
      const batch = row.batch_size.toLocaleString("en");
      return `${row.num_gpus}, batch ${batch}: ${row.median.toFixed(2)} measured (${spread})`;
    });
    const forecast = modelled.map(([count, times]) => `${count}: ${times.toFixed(2)} modelled`);
    return [...measured, ...forecast].join("; ");
  }
}
