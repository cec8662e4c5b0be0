// Keys and values on a ring, contiguous beside zigzag: see context.py for the data, the plan.
(() => {
  "use strict";
  const { COLORS, element, drawn, RankSteps, begin } = motion;
  const WIDTH = 340, BOX = 5, CHIP = 22, SIDE = 26; // pixels
  const [TOP, QUERIES, KEYS, COUNT, SQUARE] = [18, 26, 56, 96, 134]; // what begins where
  const ROUND = 2400; // milliseconds

  /** One way to deal out a sequence: its ranks, and the square of its pairs. */
  class Panel {
    constructor(name, plan) {
      Object.assign(this, { name, plan, ranks: plan.held.length });
      this.across = WIDTH / this.ranks;
      this.chunks = this.ranks * plan.held[0].length;
      this.left = (WIDTH - (this.chunks - 1) * SIDE) / 2;
      this.owner = {};
      for (const [rank, chunks] of plan.held.entries()) {
        for (const chunk of chunks) this.owner[chunk] = rank;
      }
      this.place = element("div");
      const title = element("strong", { textContent: name });
      this.box = element("div", {}, title, this.place);
      this.box.append(element("p", { textContent: plan.cost }));
    }

    /** So many rounds are over, and of the next one `part`. */
    draw(done, part, when) {
      const all = [...Array(this.ranks).keys()];
      const label = `${this.name} over ${this.ranks} ranks, ${when}. ${this.plan.words[done]}`;
      const tall = SQUARE + this.chunks * SIDE + BOX;
      const size = { viewBox: `0 0 ${WIDTH} ${tall}`, role: "img", "aria-label": label };
      this.place.replaceChildren(drawn("svg", size,
        ...all.flatMap((rank) => this.#rank(rank, done, part)), ...this.#square(done, part),
        ...this.#moving(done, part),
      ));
    }

    /** Whose keys a rank has: after the last round nothing has moved on. */
    #source(rank, done) {
      return (rank - Math.min(done, this.ranks - 1) + this.ranks) % this.ranks;
    }

    #chip(x, y, chunk, kind) {
      const box = { x, y, width: CHIP, height: CHIP };
      const fill = { ...box, fill: COLORS[this.owner[chunk]], "fill-opacity": 0.5 };
      return drawn("g", { class: kind, "data-chunk": chunk },
        drawn("rect", { ...box, class: "context-ground" }), drawn("rect", fill),
        drawn("rect", { ...box, class: "context-frame" }),
        drawn("text", { x: x + CHIP / 2, y: y + 15 }, `${chunk}`));
    }

    #chips(at, rank, y, kind) {
      const chunks = this.plan.held[rank];
      const left = (at + 0.5) * this.across - (chunks.length * CHIP + 4) / 2;
      return chunks.map((chunk, i) => this.#chip(left + i * (CHIP + 4), y, chunk, kind));
    }

    #rank(rank, done, part) {
      const middle = (rank + 0.5) * this.across;
      const box = {
        x: rank * this.across + BOX, y: TOP, rx: 8, width: this.across - 2 * BOX,
        height: COUNT - TOP + 8, fill: "none", stroke: COLORS[rank], "stroke-width": 2,
      };
      const step = part > 0 ? done : done - 1;
      const pairs = (this.plan.rounds[step] ?? []).filter(([of]) => of === rank).length;
      const words = step < 0 ? "" : `${pairs || "no"} ${pairs === 1 ? "pair" : "pairs"}`;
      return [
        drawn("rect", box), drawn("text", { x: middle, y: TOP - 6 }, `rank ${rank}`),
        ...this.#chips(rank, rank, QUERIES, "context-queries"),
        ...this.#chips(rank, this.#source(rank, done), KEYS, "context-keys"),
        drawn("text", { x: middle, y: COUNT, class: "context-count" }, words),
      ];
    }

    /** Keys and values on their way to the next rank, while this one computes with them. */
    #moving(done, part) {
      if (part <= 0 || done >= this.ranks - 1) return [];
      const eased = part * part * (3 - 2 * part);
      return [...Array(this.ranks).keys()].flatMap((rank) => {
        const next = (rank + 1) % this.ranks;
        const at = rank + (next - rank) * eased;
        return this.#chips(at, this.#source(rank, done), KEYS, "context-moving");
      });
    }

    #square(done, part) {
      const labels = [...Array(this.chunks).keys()].flatMap((chunk) => [
        drawn("text", { x: this.left + (chunk + 0.5) * SIDE, y: SQUARE - 6 }, `${chunk}`),
        this.#chip(this.left - SIDE, SQUARE + chunk * SIDE + 2, chunk, "context-row"),
      ]);
      const cells = this.plan.rounds.flatMap((pairs, step) =>
        pairs.map((pair) => this.#cell(pair, step, done, part)));
      return [...labels, ...cells];
    }

    #cell([rank, i, j], step, done, part) {
      const box = {
        x: this.left + j * SIDE + 1, y: SQUARE + i * SIDE + 1, width: SIDE - 2, height: SIDE - 2,
      };
      const isOver = step < done;
      const isNow = part > 0 ? step === done : step === done - 1;
      const kind = isOver ? "context-over" : "context-waits";
      const group = { class: kind, "data-pair": `${rank}: ${i},${j}`, "data-now": isNow };
      const frame = drawn("rect", { ...box, class: isOver ? "context-frame" : "context-later" });
      const height = box.height * (isOver ? 1 : isNow ? part : 0);
      const fill = {
        ...box, height, fill: COLORS[rank], "fill-opacity": isNow ? 0.5 : 0.2,
      };
      const at = { x: box.x + box.width / 2, y: box.y + 16 };
      const number = isOver ? [drawn("text", at, `${step + 1}`)] : [];
      return drawn("g", group, drawn("rect", fill), frame, ...number);
    }
  }

  class Context extends RankSteps {
    constructor(root) {
      super(root, "context", ROUND);
      this.place.className = "context-panels";
      this.start();
    }

    chosen(plans) {
      this.panels = Object.entries(plans).map(([name, plan]) => new Panel(name, plan));
      this.place.replaceChildren(...this.panels.map(({ box }) => box));
      return this.panels[0].ranks;
    }

    when(done, isMoving) {
      if (isMoving) return `in round ${done + 1} of ${this.number}`;
      return done ? `after round ${done} of ${this.number}` : "before";
    }

    draw(done, part, when) {
      for (const panel of this.panels) panel.draw(done, part, when);
    }

    words(done) {
      return this.panels.map(({ name, plan }) => `${name}: ${plan.words[done]}`);
    }
  }

  begin("context", Context);
})();
