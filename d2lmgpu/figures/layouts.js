// The explorer of layouts: what layoutmodel.js says of each, the quickest first. See layouts.py.
(() => {
  "use strict";
  const { COLORS, element, drawn, select, begin } = motion;
  const [BLUE, ORANGE] = COLORS;
  const GIB = 2 ** 30;
  const FIRST = 6; // of each kind are shown at once, the others when they are asked for
  const LABELS = {
    network: "Network", batch: "Tokens of a batch", sequence: "Tokens of a sequence",
    machine: "Machines of 8", gpus: "GPUs",
  };
  const SIDES = ["dp", "fsdp", "pp", "cp", "tp"];
  const [FITS, OPEN, DOES_NOT, CANNOT] = layoutModel.VERDICTS;

  const thousands = (value) => value.toLocaleString("en");
  const digits = (value) => Number(value.toPrecision(2)).toLocaleString("en");
  const gib = (bytes) => thousands(Math.round(bytes / GIB));
  /** Its sides that share something: "fsdp 16, tp 2". */
  const named = (layout) => SIDES.filter((side) => layout[side] > 1)
    .map((side) => `${side} ${thousands(layout[side])}`).join(", ") || "one GPU";

  function trained({ micro, recompute, interleave }) {
    const words = [`${micro} ${micro === 1 ? "sequence" : "sequences"} at once`];
    if (recompute) words.push("recomputing");
    if (interleave > 1) words.push(`${interleave} stages a GPU`);
    return words.join(", ");
  }

  class Layouts {
    constructor(root) {
      this.root = root;
      this.data = JSON.parse(root.querySelector("script").textContent);
      this.address = settingsInAddress(root);
      const sent = this.address.read();
      const about = root.querySelector("p:last-of-type");
      const { choices, start } = this.data;
      this.fields = Object.entries(LABELS).map(([name, label]) => {
        const texts = Object.keys(choices[name]);
        const asked = sent?.get(name);
        const field = select(label, texts, texts.includes(asked) ? asked : start[name]);
        field.dataset.name = name;
        field.addEventListener("input", () => this.#show(true));
        return field;
      });
      this.status = element("p");
      this.status.setAttribute("role", "status");
      this.place = element("div");
      const controls = { className: "explore-controls" };
      const labels = this.fields.map((field) => field.parentElement);
      root.replaceChildren(element("div", controls, ...labels), this.status, this.place, about);
      this.#show(false);
      if (sent) root.scrollIntoView();
    }

    #chosen(name) {
      const { value } = this.fields.find(({ dataset }) => dataset.name === name);
      return [value, this.data.choices[name][value]];
    }

    #show(isTold) {
      const { given } = this.data;
      const [network, sizes] = this.#chosen("network");
      const [, inBatch] = this.#chosen("batch");
      const [length, tokens] = this.#chosen("sequence");
      const [machineName, machine] = this.#chosen("machine");
      const [count, gpus] = this.#chosen("gpus");
      const batch = inBatch / tokens;
      this.machine = machine;
      const ranked = layoutModel.ranked(given, { ...sizes, tokens }, gpus, batch, machine);
      const of = (verdict) => ranked.filter((candidate) => candidate.verdict === verdict);
      const [fits, open, not, never] = [FITS, OPEN, DOES_NOT, CANNOT].map(of);
      this.slowest = given.band[1] * (fits[Math.min(FIRST, fits.length) - 1]?.step.seconds ?? 1);
      const counts = `Of ${thousands(ranked.length)} layouts ${thousands(fits.length)} fit, of ` +
        `${thousands(open.length)} it cannot be told, ${thousands(not.length)} do not fit, and ` +
        `${thousands(never.length)} cannot be made.`;
      const words = [
        `${network}, ${thousands(batch)} ${batch === 1 ? "sequence" : "sequences"} of ${length} ` +
        `tokens on ${count} ${machineName}. ${counts}`,
      ];
      if (fits.length) {
        const [best, worst] = [fits[0], fits.at(-1)];
        const times = digits(worst.step.seconds / best.step.seconds);
        words.push(
          `The quickest that fits, modelled: ${named(best.layout)}, ${this.#time(best)} a step.`,
          fits.length > 1 ?
            `The slowest, ${named(worst.layout)}, takes ${times} times as long.` : "",
        );
      }
      this.status.textContent = words.join(" ").trim();
      this.root.dataset.best = fits.length ? JSON.stringify(fits[0].layout) : "";
      this.place.replaceChildren(
        ...this.#listed(fits, "that fit", false),
        ...this.#listed([...open, ...not, ...never], "that do not, or may not", true),
      );
      const settings = this.fields.map(({ dataset, value }) => [dataset.name, value]);
      if (isTold) this.address.write(settings);
    }

    /** A step's time with its band: "5.2 to 8.5 s". */
    #time({ step }) {
      const [low, high] = this.data.given.band;
      return `${digits(low * step.seconds)} to ${digits(high * step.seconds)} s`;
    }

    /** The first of them, and the others behind a summary, made when it is opened. */
    #listed(all, kind, isGreyed) {
      const list = (some) => {
        const made = element("ul", { className: "layouts-list" });
        made.append(...some.map((candidate) => this.#card(candidate, isGreyed)));
        return made;
      };
      const shown = [];
      if (all.length) shown.push(list(all.slice(0, FIRST)));
      const others = all.slice(FIRST);
      if (others.length) {
        const words = `${thousands(others.length)} more ${kind}`;
        const more = element("details", {}, element("summary", { textContent: words }));
        more.addEventListener("toggle", () => {
          if (more.childElementCount === 1) more.append(list(others));
        });
        shown.push(more);
      }
      return shown;
    }

    #card({ layout, verdict, reason, training, within, step }, isGreyed) {
      const made = element("li", {
        className: `layouts-one${isGreyed ? " layouts-greyed" : ""}`,
      });
      const name = element("p", {}, element("strong", { textContent: named(layout) }));
      made.append(name);
      if (reason) {
        made.append(element("p", { textContent: `${verdict}: ${reason}` }));
        return made;
      }
      const small = { className: "layouts-more", textContent: trained(training) };
      name.append(element("span", small));
      const { card, cardName } = this.machine;
      const held = `${gib(within[0])} to ${gib(within[1])} GiB of ${gib(card)}`;
      const memory = isGreyed ? `${verdict}: ${held}, ${cardName}` : held;
      if (!isGreyed) {
        const share = `${Math.round(100 * step.share)} % of the peak`;
        const modelled = `modelled ${digits(step.seconds)} s, ${share}`;
        made.append(element("p", {}, this.#time({ step }), this.#timeBar(step),
          element("span", { className: "layouts-more", textContent: modelled })));
      }
      made.append(element("p", {}, memory, this.#memoryBar(within, card)));
      return made;
    }

    /** Dark what is modelled, fainter the band; all of a list on one scale. */
    #timeBar({ seconds }) {
      const x = (value) => Math.min(200, (200 * value) / this.slowest);
      const [low, high] = this.data.given.band.map((times) => x(times * seconds));
      return this.#bar(
        this.#box(0, x(seconds), BLUE, 0.9), this.#box(x(seconds), low, BLUE, 0.5),
        this.#box(low, high, BLUE, 0.25),
      );
    }

    #memoryBar([low, high], card) {
      const right = 1.25 * card;
      const x = (bytes) => Math.min(200, (200 * bytes) / right);
      const line = { x1: x(card), x2: x(card), y1: 0, y2: 10, class: "layouts-card" };
      return this.#bar(
        this.#box(0, x(low), ORANGE, 0.8), this.#box(x(low), x(high), ORANGE, 0.35),
        drawn("line", line),
      );
    }

    #bar(...parts) {
      const size = { viewBox: "0 0 200 10", preserveAspectRatio: "none", "aria-hidden": "true" };
      const frame = { x: 0, y: 0, width: 200, height: 10, class: "layouts-frame" };
      return drawn("svg", size, ...parts, drawn("rect", frame));
    }

    #box(left, right, fill, opacity) {
      const box = { x: left, y: 1, width: Math.max(0, right - left), height: 8 };
      return drawn("rect", { ...box, fill, "fill-opacity": opacity });
    }
  }

  begin("layouts", Layouts);
})();
