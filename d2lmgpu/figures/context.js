// Keys and values on a ring, contiguous beside zigzag: see context.py for the data, the plan.
(() => {
  "use strict";
  const { COLORS, SAME, element, drawn, select, Player, begin } = motion;
  const WIDTH = 340, BOX = 5, CHIP = 22, SIDE = 26; // pixels
  const [TOP, QUERIES, KEYS, COUNT, SQUARE] = [18, 26, 56, 96, 134]; // what begins where
  const ROUND = 2400; // milliseconds

  const first = (words) => words[0].toUpperCase() + words.slice(1);

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
      const label = `${this.name} over ${this.ranks} ranks, ${when}. ${this.plan.said[done]}`;
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

  class Context {
    constructor(root) {
      this.data = JSON.parse(root.querySelector("script").textContent);
      const address = settingsInAddress(root);
      const sent = address.read();
      const about = root.querySelector("p:last-of-type");
      const { plans } = this.data;
      const ranks = sent?.get("ranks") in plans ? sent.get("ranks") : String(this.data.ranks);
      this.several = select("Ranks", Object.keys(plans), ranks);
      this.player = new Player({
        show: (at) => this.#show(at),
        stops: () => [...Array(this.rounds + 1).keys()].map((round) => round / this.rounds),
        length: () => ROUND * this.rounds,
        address,
        settings: () => [["ranks", this.several.value]],
      });
      this.place = element("div", { className: "context-panels" });
      this.said = element("div", { className: "context-said" });
      this.said.setAttribute("role", "status");
      const controls = { className: "explore-controls" };
      root.replaceChildren(
        element("div", controls, this.several.parentElement), this.player.controls,
        this.place, this.said, about,
      );
      this.several.addEventListener("input", () => this.#choose(1));
      this.#choose(Player.sentIn(sent), false);
      this.player.endOnPaper();
      if (sent) root.scrollIntoView();
    }

    #choose(at, isTold = true) {
      this.player.stop();
      const plans = this.data.plans[this.several.value];
      this.panels = Object.entries(plans).map(([name, plan]) => new Panel(name, plan));
      this.rounds = this.panels[0].ranks;
      this.place.replaceChildren(...this.panels.map(({ box }) => box));
      this.shown = null;
      this.player.move(at, isTold);
    }

    #when(done, isMoving) {
      if (isMoving) return `in round ${done + 1} of ${this.rounds}`;
      return done ? `after round ${done} of ${this.rounds}` : "before";
    }

    #show(at) {
      const done = Math.floor((at + SAME) * this.rounds);
      const part = Math.max(at * this.rounds - done, 0);
      const isMoving = part > SAME * this.rounds;
      const when = this.#when(done, isMoving);
      for (const panel of this.panels) panel.draw(done, isMoving ? part : 0, when);
      const words = this.panels.map(({ name, plan }) => `${name}: ${plan.said[done]}`);
      this.player.say(first(when), words.join(" "));
      const told = `${this.several.value} ${done}`;
      if (this.shown === told) return; // said aloud only when a round is over
      this.shown = told;
      this.said.replaceChildren(...words.map((textContent) => element("p", { textContent })));
    }
  }

  begin("context", Context);
})();
