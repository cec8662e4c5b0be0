// The break-it lab: what each host did, and what a harm cost beside what was predicted.
//
// A source has get(name), on("change:name", heard), off(name, heard) and send({ do, … }); its
// get("names") are those of all that a live lab draws (see d2lmgpu/course/breaking/messages.py).
"use strict";

class BreakingLab {
  static PARTS = `
    <div class="lab-buttons breaking-run"></div>
    <div class="lab-buttons breaking-harms" role="group" aria-label="Harms"></div>
    <p class="lab-silence" role="alert"></p>
    <form class="breaking-outcomes"></form>
    <p class="lab-message" role="status"></p>
    <div class="breaking-picture"></div>
    <div class="lab-table" tabindex="0" role="region" aria-label="Predicted and measured"></div>`;
  static WHAT = ["trains", "saves", "silent", "meets", "starts Python", "is away"];
  static TICKS = [1, 2, 5, 10, 20, 50, 100];

  constructor(root, source) {
    this.root = document.createElement("div");
    this.root.className = "lab-root breaking";
    // JupyterLab leaves the keys to the lab.
    this.root.dataset.lmSuppressShortcuts = "true";
    this.root.addEventListener("keydown", (event) => event.stopPropagation());
    this.root.innerHTML = BreakingLab.PARTS;
    root.append(this.root);
    [this.run, this.harms, this.silence, this.form, this.message, this.picture, this.table] =
      this.root.children;
    this.source = new LabLine(this.silence, source);
    this.recorded = Boolean(source.get("provenance"));
    const legend = this.recorded ? "Recorded" : "So far";
    this.choice = new LabChoice(this.form, "harm", legend, (value) => {
      this.chosen = Number(value);
      this.#show();
    });
    this.root.addEventListener("click", (event) => this.#press(event.target.closest("button")));
    this.theme = new LabTheme(this.root, () => {});
    this.names = this.recorded ? [] : source.get("names");
    for (const name of this.names) this.source.on(`change:${name}`, this.mark);
    this.mark();
  }

  #press(button) {
    if (!button || button.ariaDisabled === "true") return;
    this.source.send({ ...button.dataset });
    if (button.dataset.do === "press") this.chosen = undefined; // the newest is shown
  }

  /** Draw what has changed, once a frame. */
  mark = () => {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.#show();
    });
  };

  #show() {
    const [outcomes, now] = [this.source.get("outcomes"), this.source.get("now")];
    if (!this.recorded) this.#showControls();
    const texts = outcomes.map(({ title }, index) => [String(index), LabWords.html(title)]);
    const shown = this.chosen ?? (this.recorded ? 0 : outcomes.length - 1);
    this.form.hidden = outcomes.length < 2;
    this.choice.show(texts, String(shown));
    const outcome = outcomes[shown];
    this.message.textContent = this.source.get(this.recorded ? "provenance" : "message");
    const drawn = outcome ?? now;
    this.picture.innerHTML = drawn ? this.#timeline(drawn) : "";
    this.table.hidden = !outcome;
    this.table.innerHTML = outcome ? this.#rows(outcome) : "";
  }

  #showControls() {
    const runs = this.source.get("runs");
    const button = (what, text) => `<button type="button" data-do="${what}">${text}</button>`;
    BreakingLab.#fill(this.run, runs
      ? button("stop", "Stop, and remove the hosts")
      : button("start", "Start: make three hosts, and train on them"));
    BreakingLab.#fill(this.harms, this.source.get("buttons").map(({ name, label, seconds }) => {
      const cost = seconds === null ? ""
        : ` <small>predicted ${seconds.toFixed(seconds < 1 ? 2 : 1)} s</small>`;
      const does = `data-do="press" data-name="${name}" aria-disabled="${seconds === null}"`;
      return `<button type="button" ${does}>${LabWords.html(label)}${cost}</button>`;
    }).join(""));
  }

  /** Buttons stay the same elements while only their text changes, so that the focus stays. */
  static #fill(place, html) {
    const made = document.createElement("div");
    made.innerHTML = html;
    if (made.children.length !== place.children.length) {
      place.replaceChildren(...made.children);
      return;
    }
    [...made.children].forEach((child, index) => {
      const old = place.children[index];
      if (old.isEqualNode(child)) return;
      for (const { name, value } of child.attributes) old.setAttribute(name, value);
      old.innerHTML = child.innerHTML;
    });
  }

  #timeline({ lanes, seconds, at, title, said }) {
    const share = (x) => ((100 * x) / seconds).toFixed(2);
    const look = (what) => `breaking-${what.replaceAll(" ", "-")}`;
    const names = Object.keys(lanes).sort();
    const there = Object.values(lanes).flat();
    const shown = BreakingLab.WHAT.filter((what) => there.some((span) => span[0] === what));
    const mark = (what) => `<span><i class="lab-mark ${look(what)}"></i>${what}</span>`;
    const line = at === undefined ? "" : `<b style="left: ${share(at)}%"></b>`;
    const rows = names.map((name) => {
      const bars = lanes[name].map(([what, from, to]) => {
        const place = `left: ${share(from)}%; width: ${share(to - from)}%`;
        return `<i class="${look(what)}" style="${place}"></i>`;
      });
      const words = lanes[name].filter(([what]) => what !== "saves").map(([what, from, to]) =>
        `${what} for ${LabWords.number(to - from)} s`).join(", ");
      return `<div class="lab-lane"><span>${name}</span>
        <div role="img" aria-label="${name}: ${words}">${bars.join("")}${line}</div></div>`;
    });
    const step = BreakingLab.TICKS.find((tick) => seconds / tick <= 8) ?? seconds;
    const zero = at ?? seconds;
    const ticks = [];
    for (let x = -Math.floor(zero / step) * step; x <= seconds - zero; x += step) {
      ticks.push(`<span style="left: ${share(x + zero)}%">${x}</span>`);
    }
    const since = at === undefined ? "seconds, now is 0" : "seconds since the harm";
    const words = title ? LabWords.html(`${title}: ${said || "…"}`) : "";
    const caption = words ? `<p><strong>${words}</strong></p>` : "";
    return `${caption}<p class="lab-key">${shown.map(mark).join(" ")}</p>${rows.join("")}
      <div class="lab-lane breaking-axis" aria-hidden="true">
        <span></span><div>${ticks.join("")}</div>
      </div>
      <p class="lab-note breaking-since">${since}, ${this.recorded ? "recorded" : "measured"}</p>`;
  }

  #rows({ rows }) {
    const measured = this.recorded ? "recorded" : "measured";
    const text = (value, unit) => {
      if (value === null) return "–";
      return unit ? `${value.toFixed(2)} ${unit}` : LabWords.number(value);
    };
    const body = rows.map(([label, unit, ...values]) => {
      const cells = values.map((value) => `<td>${text(value, unit)}</td>`).join("");
      return `<tr><th scope="row">${LabWords.html(label)}</th>${cells}</tr>`;
    });
    return `<table><thead><tr><td></td><th scope="col">predicted</th>
      <th scope="col">${measured}</th></tr></thead><tbody>${body.join("")}</tbody></table>`;
  }

  end() {
    for (const name of this.names) this.source.off(`change:${name}`, this.mark);
    this.source.end();
    cancelAnimationFrame(this.frame);
    this.theme.end();
    this.root.remove();
  }
}
