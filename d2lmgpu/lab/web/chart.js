// A chart of lines: uPlot draws what a picture says, and tells what is under the pointer.
//
// A picture is { x: { label, range, whole }, y: { label, range }, lines: [...] }, each line
// { name, colour, points: [[x, y], …] } and, where wanted, an id, width, dash, dots and their size,
// a tag at its end, diverged where some y is not finite, and spread: [[least, greatest], …] of its
// points. Colours are names of the style sheet's --lab-….
"use strict";

class LabChart {
  static HEIGHT = 280;
  static FONT = "12px system-ui, sans-serif";

  /** `pointed(values)` hears {id or name of a line: [x, y]} of the points nearest to the pointer,
      null without. */
  constructor(place, pointed, height = LabChart.HEIGHT) {
    this.place = place;
    this.height = height; // in pixels
    this.pointed = pointed;
    this.watcher = new ResizeObserver(() => this.#fit());
    this.watcher.observe(place);
    this.paper = () => this.#print();
    addEventListener("beforeprint", this.paper);
  }

  draw(picture) {
    this.picture = picture;
    const lines = picture.lines.map(({ points, spread, ...look }) => look);
    const shape = JSON.stringify([picture.x.label, picture.y.label, lines]);
    if (shape === this.shape) {
      this.plot.setData(this.#data());
    } else {
      this.plot?.destroy();
      this.shape = shape;
      this.plot = new uPlot(this.#options(), this.#data(), this.place);
    }
  }

  /** The colours are others now. */
  restyle() {
    this.shape = null;
    if (this.picture) this.draw(this.picture);
  }

  end() {
    removeEventListener("beforeprint", this.paper);
    this.watcher.disconnect();
    this.plot?.destroy();
  }

  colour(name) {
    return getComputedStyle(this.place).getPropertyValue(`--lab-${name}`).trim();
  }

  /** Move the pointer to the next point with the keyboard. */
  step(distance) {
    const xs = this.plot.data[0];
    if (!xs.length) return;
    const at = (this.plot.cursor.idx ?? (distance > 0 ? -1 : xs.length)) + distance;
    const x = xs[Math.min(Math.max(at, 0), xs.length - 1)];
    this.plot.setCursor({ left: this.plot.valToPos(x, "x"), top: 0 });
  }

  leave() {
    this.plot?.setCursor({ left: -10, top: -10 });
  }

  #data() {
    const finite = (y) => (Number.isFinite(y) ? y : null);
    const tables = this.picture.lines.map(({ points }) => {
      const sorted = [...points].sort((a, b) => a[0] - b[0]);
      return [sorted.map(([x]) => x), sorted.map(([, y]) => finite(y))];
    });
    return tables.length ? uPlot.join(tables) : [[]];
  }

  #options() {
    const [ink, line] = ["muted", "line"].map((name) => this.colour(name));
    const axis = {
      stroke: ink, font: LabChart.FONT, labelFont: LabChart.FONT, labelSize: 18, labelGap: 0,
      grid: { stroke: line, width: 1 }, ticks: { stroke: line, size: 4 },
    };
    const { x, y, lines } = this.picture;
    const series = lines.map((curve) => ({
      label: curve.name,
      stroke: this.colour(curve.colour),
      width: curve.width ?? 2,
      dash: curve.dash ? [6, 5] : undefined,
      paths: curve.width === 0 ? () => null : undefined,
      points: { show: curve.dots === true, size: curve.size ?? 8, fill: this.colour(curve.colour) },
    }));
    const whole = x.whole ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] : undefined;
    return {
      width: this.#width(), height: this.height, legend: { show: false },
      padding: [8, 22, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, hover: { skip: [null, undefined] } },
      scales: {
        x: { time: false, range: () => this.picture.x.range },
        y: { range: () => this.picture.y.range },
      },
      axes: [
        { ...axis, label: x.label, size: 30, ...(whole && { incrs: whole, space: 30 }) },
        { ...axis, label: y.label, size: 50 },
      ],
      series: [{}, ...series],
      hooks: { setCursor: [() => this.#point()], draw: [(plot) => this.#mark(plot)] },
    };
  }

  /** Tags at the ends of curves, and bars for what is spread: over what uPlot has drawn. */
  #mark(plot) {
    const { ctx } = plot;
    const scale = uPlot.pxRatio;
    const at = (value, axis) => plot.valToPos(value, axis, true);
    ctx.save();
    ctx.font = `bold ${12 * scale}px system-ui, sans-serif`;
    const tags = LabChart.tags(this.picture, (y) => at(y, "y"), 12 * scale);
    for (const { x, at: height, tag, side, colour } of tags) {
      ctx.fillStyle = this.colour(colour);
      ctx.textAlign = side;
      ctx.fillText(tag, at(x, "x") + (side === "end" ? -6 : 6) * scale, height + 4 * scale);
    }
    ctx.lineWidth = 2 * scale;
    for (const { points, spread = [], colour } of this.picture.lines) {
      ctx.strokeStyle = this.colour(colour);
      spread.forEach(([low, high], index) => {
        ctx.beginPath();
        ctx.moveTo(at(points[index][0], "x"), at(low, "y"));
        ctx.lineTo(at(points[index][0], "x"), at(high, "y"));
        ctx.stroke();
      });
    }
    ctx.restore();
  }

  /** The ends of lines with a tag, from the top down, `gap` apart: `at`, where `up(y)` is. */
  static tags({ lines, x: { range: [low, high] }, y }, up, gap) {
    const ends = lines
      .filter(({ tag, points }) => tag && points.length)
      .map(({ tag, diverged, points, colour }) => {
        const [x, value] = points.findLast((point) => point.every(Number.isFinite)) ??
          [points.at(-1)[0], y.range[1]]; // a curve without any point: at the top
        const side = diverged && x > (low + high) / 2 ? "end" : "start";
        const words = diverged ? `${tag} diverged` : tag;
        return { tag: words, side, colour, x, y: Math.min(value, y.range[1]) };
      })
      .sort((a, b) => b.y - a.y);
    return LabChart.#apart(ends.map((end) => ({ ...end, at: up(end.y) })), gap);
  }

  /** Neighbours that would cover each other give way, one up and one down. */
  static #apart(tags, gap) {
    for (let round = 0; round < 20; round += 1) {
      if (tags.length) tags[0].at = Math.max(tags[0].at, gap / 2);
      for (let index = 1; index < tags.length; index += 1) {
        const [upper, lower] = [tags[index - 1], tags[index]];
        const lacking = Math.max(0, gap - (lower.at - upper.at)) / 2;
        upper.at -= lacking;
        lower.at += lacking;
      }
    }
    return tags;
  }

  #point() {
    const { cursor, data } = this.plot ?? {};
    if (!cursor || cursor.left < 0 || !cursor.idxs) return this.pointed(null);
    const values = {};
    this.picture.lines.forEach(({ id, name }, index) => {
      const place = cursor.idxs[index + 1];
      if (place !== null && place !== undefined && Number.isFinite(data[index + 1][place])) {
        values[id ?? name] = [data[0][place], data[index + 1][place]];
      }
    });
    return this.pointed(values);
  }

  /** On paper a canvas is a picture of dots: a drawing takes its place there, its lines named. */
  #print() {
    this.printed ??= this.place.appendChild(document.createElement("div"));
    this.printed.className = "lab-printed";
    this.printed.innerHTML = this.picture ? LabSvg.text(this.picture, (of) => this.colour(of)) : "";
  }

  #width() {
    return Math.max(200, this.place.clientWidth);
  }

  #fit() {
    this.plot?.setSize({ width: this.#width(), height: this.height });
  }
}
