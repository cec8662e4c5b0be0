// While a run goes on: how far it is, and what each device does now, a lane each.
"use strict";

class LabLanes {
  static MEETING = "exchanging and waiting"; // of processes, of which the first is timed
  static WHAT = ["computing", "exchanging", "waiting", LabLanes.MEETING, "loading", "other"];

  constructor(root) {
    this.root = root;
    root.innerHTML = `
      <progress max="1" aria-label="Progress of the run"></progress> <span class="lab-said"></span>
      <div class="lab-lanes" hidden></div>`;
    [this.bar, this.words, this.lanes] = root.children;
  }

  /** Show the present run; null for none. */
  show(live) {
    this.root.hidden = live === null;
    if (live === null) return;
    if (live.progress === null) this.bar.removeAttribute("value");
    else this.bar.value = live.progress;
    this.words.textContent = LabLanes.#words(live);
    const memory = live.run.memory ?? [];
    this.lanes.hidden = !live.lanes.length;
    if (live.lanes.length) this.lanes.innerHTML = LabLanes.#picture(live.lanes, memory);
  }

  static #words({ run, epoch, num_epochs: of, speed, seconds_left: left }) {
    const parts = [];
    if (epoch) parts.push(`epoch ${epoch}${of ? ` of ${of}` : ""}`);
    if (speed) parts.push(`${LabWords.number(speed)} samples/s (${run.timing || "not timed"})`);
    if (left !== null) parts.push(`about ${Math.round(left)} s left`);
    return parts.join(", ");
  }

  static #picture(lanes, memory) {
    const all = lanes.flat();
    const from = Math.min(...all.map((part) => part.start));
    const until = Math.max(...all.map((part) => part.end), from + 1e-9);
    const share = (seconds) => (100 * seconds / (until - from)).toFixed(2);
    const lane = (parts, device) => {
      const bars = parts.map(({ what, start, end }) => {
        const place = `left: ${share(start - from)}%; width: ${share(end - start)}%`;
        return `<i class="${LabLanes.look(what)}" style="${place}"></i>`;
      });
      const used = memory[device] ? `, ${LabWords.bytes(memory[device])}` : "";
      const doing = parts.at(-1)?.what ?? "";
      return `<div class="lab-lane"><span>device ${device}${used}</span>
        <div role="img" aria-label="device ${device}: ${doing}">${bars.join("")}</div></div>`;
    };
    const shown = LabLanes.WHAT.filter((what) => all.some((part) => part.what === what));
    const first = shown.includes(LabLanes.MEETING) ? " in the first process" : "";
    const words = `The last ${LabWords.milliseconds(until - from)}${first}, measured`;
    return `<p>${words}: ${LabLanes.key(shown)}</p>${lanes.map(lane).join("")}`;
  }

  static look(what) {
    return `lab-what-${what.replaceAll(" ", "-")}`;
  }

  static key(shown) {
    const marks = shown.map((what) => `<i class="lab-mark ${LabLanes.look(what)}"></i>${what}`);
    return `<span class="lab-key">${marks.join(" ")}</span>`;
  }
}
