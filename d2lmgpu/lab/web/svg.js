// A picture (see chart.js) as the text of an SVG file, for those who want to print it.
"use strict";

class LabSvg {
  static WIDTH = 640; // or more, if a name is long
  static LETTER = 6.5; // the width of a letter on the average, at most
  static HEIGHT = 360;
  static LEFT = 60;
  static RIGHT = 450;
  static KEY = 484;
  static TOP = 16;
  static FLOOR = 310;

  /** `colour(name)` is what the style sheet calls --lab-name. */
  static text(picture, colour) {
    const { LEFT, RIGHT, TOP, FLOOR, KEY } = LabSvg;
    const across = LabSvg.#scale(picture.x.range, LEFT, RIGHT);
    const up = LabSvg.#scale(picture.y.range, FLOOR, TOP);
    const [width, height] = [RIGHT - LEFT, FLOOR - TOP];
    const box = `${LEFT} ${TOP} ${width} ${height}`; // what leaves the axes is cut off
    const names = picture.lines.map(({ tag, name }) => (tag ? `${tag}: ${name}` : name));
    const longest = Math.max(0, ...names.map((name) => name.length));
    const parts = [
      `<rect width="100%" height="100%" fill="${colour("ground")}"/>`,
      ...LabSvg.#ticks(picture.x).map((tick) => {
        const at = across(tick);
        return `<path d="M${at} ${TOP}V${FLOOR}" stroke="${colour("line")}"/>
          <text x="${at}" y="${FLOOR + 16}" text-anchor="middle">${LabWords.number(tick)}</text>`;
      }),
      ...LabSvg.#ticks(picture.y).map((tick) => {
        const at = up(tick);
        return `<path d="M${LEFT} ${at}H${RIGHT}" stroke="${colour("line")}"/>
          <text x="${LEFT - 6}" y="${at + 4}" text-anchor="end">${LabWords.number(tick)}</text>`;
      }),
      `<text x="${(LEFT + RIGHT) / 2}" y="${FLOOR + 36}" text-anchor="middle">` +
        `${LabWords.html(picture.x.label)}</text>`,
      `<text transform="translate(14 ${(TOP + FLOOR) / 2}) rotate(-90)" text-anchor="middle">` +
        `${LabWords.html(picture.y.label)}</text>`,
      `<svg x="${LEFT}" y="${TOP}" width="${width}" height="${height}" viewBox="${box}">`,
      ...picture.lines.map((line) => LabSvg.#line(line, across, up, colour(line.colour))),
      "</svg>",
      ...LabChart.tags(picture, up, 12).map(({ x, at, tag, side, colour: of }) => {
        const look = `font-weight="bold" fill="${colour(of)}"`;
        const place = `x="${across(x) + (side === "end" ? -6 : 6)}" y="${at + 4}"`;
        return `<text ${place} text-anchor="${side}" ${look}>${LabWords.html(tag)}</text>`;
      }),
      ...picture.lines.map((line, index) => {
        const at = TOP + 12 + 18 * index;
        const stroke = colour(line.colour);
        const look = LabSvg.#look(line, stroke, line.width ?? 2);
        const mark = line.width === 0
          ? `<circle cx="${KEY + 9}" cy="${at - 4}" r="4" fill="${stroke}"/>`
          : `<path d="M${KEY} ${at - 4}h18" ${look}/>`;
        return `${mark}
          <text x="${KEY + 24}" y="${at}">${LabWords.html(names[index])}</text>`;
      }),
    ];
    const whole = Math.max(LabSvg.WIDTH, KEY + 30 + LabSvg.LETTER * longest);
    const size = `viewBox="0 0 ${whole} ${LabSvg.HEIGHT}"`;
    const holder = document.createElement("div"); // its parser knows the namespace
    const font = `font-family="sans-serif" font-size="12" fill="${colour("ink")}"`;
    holder.innerHTML = `<svg ${size} ${font}>${parts.join("")}</svg>`;
    return new XMLSerializer().serializeToString(holder.firstElementChild);
  }

  static #line({ points, spread = [], width = 2, dash, dots, size = 8 }, across, up, stroke) {
    const has = (point) => point !== undefined && point.every(Number.isFinite);
    const known = points.filter(has);
    const steps = points.map((point, index) => {
      if (!has(point)) return ""; // a gap
      return `${has(points[index - 1]) ? "L" : "M"}${across(point[0])} ${up(point[1])}`;
    });
    const bars = spread.map(([low, high], index) => {
      return `<path d="M${across(points[index][0])} ${up(low)}V${up(high)}" stroke="${stroke}"/>`;
    });
    const path = width && known.length
      ? `<path d="${steps.join("")}" fill="none" ${LabSvg.#look({ dash }, stroke, width)}/>`
      : "";
    const look = `r="${size / 2}" fill="${stroke}"`;
    const marks = dots
      ? known.map(([x, y]) => `<circle cx="${across(x)}" cy="${up(y)}" ${look}/>`)
      : [];
    return path + bars.join("") + marks.join("");
  }

  static #look({ dash }, stroke, width) {
    const dashes = dash ? ' stroke-dasharray="6 5"' : "";
    return `stroke="${stroke}" stroke-width="${width}"${dashes}`;
  }

  /** Where a value stands, to a tenth of a pixel. */
  static #scale([low, high], from, to) {
    return (value) => Math.round(10 * (from + ((value - low) / (high - low)) * (to - from))) / 10;
  }

  static #ticks({ range: [low, high], whole }) {
    const round = LabWords.roundUp((high - low) / 6);
    const step = whole ? Math.ceil(round) : round;
    const first = Math.ceil(low / step - 1e-9);
    const count = Math.floor(high / step + 1e-9) - first + 1;
    return Array.from({ length: count }, (_, index) => Number(((first + index) * step).toFixed(9)));
  }
}
