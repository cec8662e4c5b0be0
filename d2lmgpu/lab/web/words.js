// Numbers and runs in words: what the lab's parts say alike.
"use strict";

class LabWords {
  static #TEXTS = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

  /** `text` as it may stand in HTML, also within an attribute. */
  static html(text) {
    return String(text).replace(/[&<>"]/g, (letter) => LabWords.#TEXTS[letter]);
  }

  /** Three digits, or all of those before the point, thousands with commas; a dash for nothing. */
  static number(value) {
    if (value === null || value === undefined) return "–";
    if (!Number.isFinite(value)) return "not finite";
    if (Math.abs(value) >= 99.95) return Math.round(value).toLocaleString("en");
    const short = Number(value.toPrecision(3));
    return Math.abs(short) < 1e-4 && short ? short.toExponential() : String(short);
  }

  static milliseconds(seconds) {
    return `${LabWords.number(1000 * seconds)} ms`;
  }

  static percent(share, digits = 0) {
    return `${(100 * share).toFixed(digits)} %`;
  }

  static signed(share) {
    return `${share < 0 ? "−" : "+"}${LabWords.percent(Math.abs(share))}`;
  }

  static bytes(count) {
    const units = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "bytes"]];
    const [size, unit] = units.find(([size]) => count >= size) ?? units.at(-1);
    return `${LabWords.number(count / size)} ${unit}`;
  }

  static counted(count, thing) {
    return `${count.toLocaleString("en")} ${thing}${count === 1 ? "" : "s"}`;
  }

  /** The least round number that is not below `value`: where an axis may end. */
  static roundUp(value) {
    const unit = 10 ** Math.floor(Math.log10(value));
    const steps = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];
    return unit * steps.find((step) => step * unit >= value * (1 - 1e-9));
  }
}
