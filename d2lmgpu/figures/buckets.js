// Buckets that leave during the backward pass, beside all at the end: see buckets.py for the data.
(() => {
  "use strict";
  const { COLORS, SAME, time, size: bytes, element, drawn, span, select, Player, begin } = motion;
  const LEFT = 70, RIGHT = 8, TALL = 28, LANES = [4, 38], FLOOR = 72; // pixels
  const WIDTHS = [300, 720];
  const LETTER = 6.6; // pixels, of a letter: what has no room is not written
  const PLAYED = 8000; // milliseconds for the slower of both
  const GRAY = "#7F7F7F";

  /** One update as spans of two lanes: [lane, start, end, name, colour], in seconds. */
  class Update {
    constructor({ forward, layers }, buckets) {
      const names = layers.map(([name]) => name);
      const of = (layer) => buckets.findIndex(([first, last]) => first <= layer && layer <= last);
      const color = (bucket) => COLORS[bucket % COLORS.length];
      this.spans = forward ? [[0, 0, forward, "forward", GRAY, "forward pass"]] : [];
      let now = forward;
      for (let i = layers.length - 1; i >= 0; i -= 1) {
        const end = now + layers[i][1];
        const words = `backward pass of layer ${names[i]}`;
        this.spans.push([0, now, end, names[i], color(of(i)), words]);
        now = end;
      }
      this.backward = now;
      for (const [b, [first, last, , start, end]] of buckets.entries()) {
        const name = first === last ? `layer ${names[first]}` :
          `layers ${names[last]} to ${names[first]}`;
        const words = `bucket ${b + 1} of ${buckets.length} (${name}) on its way`;
        const [left, right] = [forward + start, forward + end];
        this.spans.push([1, left, right, `${b + 1}`, color(b), words]);
      }
      this.count = buckets.length;
      this.exchange = buckets.reduce((sum, [, , , start, end]) => sum + end - start, 0);
      this.most = Math.max(...buckets.map(([, , size]) => size));
      this.total = Math.max(now, ...this.spans.map(([, , end]) => end));
    }

    /** What of the exchange comes after the backward pass. */
    get shown() {
      return this.total - this.backward;
    }

    words(now) {
      const at = now + SAME * this.total;
      if (at >= this.total) return `done after ${time(this.total)}`;
      const going = this.spans.filter(([, start, end]) => start <= at && at < end);
      return going.map((span) => span[5]).join("; ");
    }
  }

  class Panel {
    constructor(name, update) {
      Object.assign(this, { name, update });
      this.status = element("p");
      this.place = element("div");
      const title = element("strong", { textContent: name });
      this.box = element("div", {}, title, this.place, this.status);
    }

    draw(now, total, width, kind) {
      const { update } = this;
      const x = (seconds) => LEFT + (seconds / total) * (width - LEFT - RIGHT);
      const boxes = update.spans.flatMap(([lane, start, end, name, fill, words]) => {
        const [left, right] = [x(start), x(end)];
        const at = { x: left, y: LANES[lane], height: TALL, fill };
        const frame = { "fill-opacity": 0.08, class: `buckets-${kind}` };
        const title = `${words}: ${time(start)} to ${time(end)}`;
        const drawnSpan = span(at, right, x(now), frame, title);
        if (name.length * LETTER < right - left - 4) {
          const place = { x: (left + right) / 2, y: LANES[lane] + 18, class: "buckets-name" };
          drawnSpan.push(drawn("text", place, name));
        }
        return drawnSpan;
      });
      const words = `${this.name}, after ${now ? time(now) : "0 s"}: ${update.words(now)}.`;
      const size = { viewBox: `0 0 ${width} 94`, width, role: "img", "aria-label": words };
      const line = { x1: x(now), x2: x(now), y1: 0, y2: FLOOR, class: "buckets-now" };
      const axis = { x1: LEFT, x2: width - RIGHT, y1: FLOOR, y2: FLOOR, class: "buckets-axis" };
      const end = x(update.total);
      const mark = { x1: end, x2: end, y1: FLOOR, y2: FLOOR + 6, stroke: "currentColor" };
      this.place.replaceChildren(drawn("svg", size,
        drawn("text", { x: LEFT - 6, y: LANES[0] + 18, class: "buckets-end" }, "each GPU"),
        drawn("text", { x: LEFT - 6, y: LANES[1] + 18, class: "buckets-end" }, "network"),
        ...boxes,
        drawn("line", axis), drawn("line", mark), drawn("line", line),
        drawn("text", { x: LEFT, y: FLOOR + 18 }, "0"),
        drawn("text", { x: end, y: FLOOR + 18, class: "buckets-end" }, time(update.total)),
      ));
      this.status.textContent = `${update.words(now)}.`;
    }
  }

  class Buckets {
    constructor(root) {
      this.root = root;
      this.data = JSON.parse(root.querySelector("script").textContent);
      const address = settingsInAddress(root);
      const sent = address.read();
      const about = root.querySelector("p:last-of-type");
      const { plans, label, start, among } = this.data;
      const of = sent?.get("of") in plans ? sent.get("of") : among;
      this.several = select(label, Object.keys(plans), of);
      this.sizes = Object.keys(Object.values(plans)[0].during);
      this.size = element("input", { type: "range", min: 0, max: this.sizes.length - 1 });
      this.size.autocomplete = "off";
      const asked = sent?.get("bucket");
      this.size.value = this.sizes.indexOf(this.sizes.includes(asked) ? asked : start);
      this.sizeSaid = element("span");
      const labelled = element("label", { className: "buckets-size", textContent: "Bucket: " });
      labelled.append(this.sizeSaid, this.size);
      this.player = new Player({
        show: (at) => this.#show(at),
        stops: () => [0, ...this.panels.flatMap(({ update }) =>
          update.spans.map(([, , end]) => end / this.total))],
        length: () => PLAYED,
        address,
        settings: () => [["of", this.several.value], ["bucket", this.sizes[this.size.value]]],
      });
      this.place = element("div", { className: "buckets-panels" });
      this.status = element("p");
      this.status.setAttribute("role", "status");
      const several = this.several.parentElement;
      several.hidden = Object.keys(plans).length === 1;
      root.replaceChildren(
        element("div", { className: "explore-controls" }, several, labelled),
        this.player.controls, this.place, this.status, about,
      );
      for (const field of [this.several, this.size]) {
        field.addEventListener("input", () => this.#choose(1));
      }
      this.#choose(Player.sentIn(sent), false);
      this.player.endOnPaper();
      new ResizeObserver(() => this.player.redraw()).observe(root);
      if (sent) root.scrollIntoView();
    }

    #choose(at, isTold = true) {
      this.player.stop();
      const bucket = this.sizes[this.size.value];
      const { during, end } = this.data.plans[this.several.value];
      const updates = [during[bucket], end].map((of) => new Update(this.data, of));
      const names = ["Buckets that leave during the backward pass", "All at the end"];
      this.panels = updates.map((update, i) => new Panel(names[i], update));
      this.total = Math.max(...updates.map(({ total }) => total));
      this.place.replaceChildren(...this.panels.map(({ box }) => box));
      this.sizeSaid.textContent = bucket;
      this.size.setAttribute("aria-valuetext", bucket);
      const { kind } = this.data;
      const [cut, whole] = updates;
      const hidden = cut.exchange - cut.shown;
      this.status.textContent = `${bucket}: ${time(cut.total)} in ${cut.count} ` +
        `${cut.count === 1 ? "bucket" : "buckets"} of at most ${bytes(cut.most)}; all at the ` +
        `end: ${time(whole.total)}. Of ${time(cut.exchange)} of exchange the backward pass hides ` +
        `${hidden > 1e-9 ? time(hidden) : "nothing"}. All times are ${kind}.`;
      this.player.move(at, isTold);
    }

    #show(at) {
      const now = at * this.total;
      const width = Math.min(Math.max(this.root.clientWidth, WIDTHS[0]), WIDTHS[1]);
      for (const panel of this.panels) panel.draw(now, this.total, width, this.data.kind);
      const after = `After ${now ? time(now) : "0 s"} of ${time(this.total)}, ${this.data.kind}`;
      const words = this.panels.map(({ name, update }) => `${name}: ${update.words(now)}`);
      this.player.say(after, words.join(". "));
    }
  }

  begin("buckets", Buckets);
})();
