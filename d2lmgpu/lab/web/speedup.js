// How many times as fast several devices are: measured, with its spread; modelled; and at best.
"use strict";

class LabSpeedup {
  constructor(root) {
    this.root = root;
    root.innerHTML = `
      <figcaption></figcaption>
      <ul class="lab-key"></ul>
      <div class="lab-plot" role="img"></div>
      <p class="lab-pointed"></p>`;
    this.plot = root.querySelector(".lab-plot");
    this.chart = new LabChart(this.plot, (values) => this.#point(values));
  }

  // `measured` rows are [{ row, num_gpus, over_num_gpus, batch_size, median, low, high }], and
  // `modelled` speedups over one device [[num_gpus, speedup]]; all are shown over `base` devices.
  show(measured, modelled, base) {
    const rows = measured.filter((row) => row.over_num_gpus === base);
    this.root.hidden = !rows.some((row) => row.num_gpus !== base) && !modelled.length;
    if (this.root.hidden) return;
    const factor = modelled.find(([count]) => count === base)?.[1];
    const over = factor ? modelled.map(([count, times]) => [count, times / factor]) : [];
    this.#draw(rows, over, base);
  }

  #draw(measured, modelled, base) {
    this.measured = measured;
    const picture = LabSpeedup.picture(measured, modelled, base);
    this.base = base === 1 ? "one device" : LabWords.counted(base, "device");
    this.root.querySelector("figcaption").textContent = `Speedup over ${this.base}`;
    this.chart.draw(picture);
    this.root.querySelector(".lab-key").innerHTML = LabSpeedup.#key(picture.lines);
    this.plot.ariaLabel = `Speedup over ${this.base}: ${this.#inWords(modelled)}`;
  }

  static picture(measured, modelled, base) {
    const counts = [...measured.map((row) => row.num_gpus), ...modelled.map(([count]) => count)];
    const most = Math.max(2, base, ...counts);
    const batches = [...new Set(measured.map((row) => row.batch_size))].sort((a, b) => a - b);
    // Batches stand side by side, so that the spread of each can be seen.
    const aside = (batch) => 0.05 * (batches.indexOf(batch) - (batches.length - 1) / 2);
    const lines = measured.map((row) => ({
      name: `row ${row.row}, batch ${row.batch_size.toLocaleString("en")}`,
      colour: String(batches.indexOf(row.batch_size) % 6), width: 0, dots: true,
      points: [[row.num_gpus + aside(row.batch_size), row.median]], spread: [[row.low, row.high]],
    }));
    const dashed = { name: "forecast (modelled)", colour: "ink", dash: true, points: modelled };
    const line = [[1, 1 / base], [most, most / base]];
    const ideal = { name: "ideal", colour: "muted", width: 1, points: line };
    const highest = Math.max(most / base, ...measured.map((row) => row.high));
    return {
      x: { label: "devices", range: [0.5, most + 0.5], whole: true },
      y: { label: "times as fast", range: [0, LabWords.roundUp(highest)] },
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
    const words = Object.entries(values ?? {})
      .filter(([name]) => name !== "ideal")
      .map(([name, [count, times]]) => {
        return `${name}: ${times.toFixed(2)} on ${LabWords.counted(Math.round(count), "device")}`;
      });
    this.root.querySelector(".lab-pointed").textContent = words.join("; ");
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
