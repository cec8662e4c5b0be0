// An MLP over ranks, columns and then rows: see split.py for the data, the plan.
(() => {
  "use strict";
  const { COLORS, first, element, drawn, RankSteps, begin } = motion;
  const WIDTH = 340, BOX = 3, GAP = 5, LABEL = 14, TOP = 16, MOST = 5; // pixels
  // A row of the picture for each matrix, with its gradient beside it.
  const ROWS = [["X", "dX"], ["A", "dA"], ["H", "dH"], ["Z"], ["B", "dB"], ["Y", "dY"]];
  const STEP = 1500; // milliseconds

  /** All ranks at one moment: what they hold, and what the step that runs makes. */
  class Ranks {
    constructor(data, ranks) {
      Object.assign(this, { shapes: data.shapes, plan: data.plans[ranks], ranks: Number(ranks) });
      this.across = WIDTH / this.ranks;
      const widest = Math.max(...ROWS.map((names) => this.#columns(names)));
      this.unit = Math.min(MOST, (this.across - 4 * BOX - GAP) / widest); // of a number
      let y = TOP + 4;
      this.places = {};
      for (const names of ROWS) {
        y += LABEL;
        const taken = this.#columns(names) * this.unit + GAP * (names.length - 1);
        let x = (this.across - taken) / 2;
        for (const name of names) {
          this.places[name] = { x, y };
          x += this.shapes[name][1] * this.unit + GAP;
        }
        y += Math.max(...names.map((name) => this.shapes[name][0])) * this.unit;
      }
      this.tall = y + 8;
    }

    #columns(names) {
      return names.reduce((sum, name) => sum + this.shapes[name][1], 0);
    }

    /** What all hold when so many steps are over: {name: [placement, parts]}. */
    held(done) {
      const steps = this.plan.steps.slice(0, done).map((step) => step.held);
      return Object.assign({}, this.plan.before, ...steps);
    }

    drawn(done, part, when) {
      const label = `An MLP over ${this.ranks} ranks. ${first(when)}. ${this.plan.words[done]}`;
      const size = { viewBox: `0 0 ${WIDTH} ${this.tall}`, role: "img", "aria-label": label };
      const all = [...Array(this.ranks).keys()];
      const id = `split-${this.ranks}-${(Ranks.made = (Ranks.made ?? 0) + 1)}`;
      return drawn("svg", size, this.#stripes(id, all),
        ...all.flatMap((rank) => this.#rank(rank, done, part, id)),
        ...this.#travelling(done, part, id));
    }

    #stripes(id, all) {
      const of = (rank) => drawn("pattern", {
        id: `${id}-${rank}`, width: 4, height: 4, patternUnits: "userSpaceOnUse",
        patternTransform: "rotate(45)",
      }, drawn("rect", { width: 2, height: 4, fill: COLORS[rank] }));
      return drawn("defs", {}, ...all.map(of));
    }

    #rank(rank, done, part, id) {
      const held = this.held(done);
      const step = part > 0 ? this.plan.steps[done] : null;
      const box = {
        x: rank * this.across + BOX, y: TOP, rx: 8, width: this.across - 2 * BOX,
        height: this.tall - TOP - 2, fill: "none", stroke: COLORS[rank], "stroke-width": 2,
      };
      const middle = { x: (rank + 0.5) * this.across, y: TOP - 5 };
      const parts = [drawn("rect", box), drawn("text", middle, `rank ${rank}`)];
      for (const name of Object.keys(this.places)) {
        const comes = step?.held[name];
        if (!held[name] && !comes) continue;
        const frame = this.#box(rank, name, [0, this.shapes[name][0], 0, this.shapes[name][1]]);
        parts.push(drawn("text", { x: frame.x + frame.width / 2, y: frame.y - 3 }, name));
        parts.push(drawn("rect", { ...frame, class: "split-outline" }));
        if (held[name]) parts.push(this.#part(rank, name, held[name], 1, id));
        else if (!step.sums) parts.push(this.#part(rank, name, comes, part, id));
        if (step?.of.includes(name) && held[name]) {
          const used = this.#box(rank, name, held[name][1][rank]);
          parts.push(drawn("rect", { ...used, class: "split-used", "data-used": name }));
        }
      }
      return parts;
    }

    #box(rank, name, [top, bottom, left, right]) {
      const { x, y } = this.places[name];
      return {
        x: rank * this.across + x + left * this.unit, y: y + top * this.unit,
        width: (right - left) * this.unit, height: (bottom - top) * this.unit,
      };
    }

    /** What a rank holds of a matrix, or `share` of it while it is being made. */
    #part(rank, name, [placement, parts], share, id) {
      const box = this.#box(rank, name, parts[rank]);
      const data = { "data-held": `${rank}: ${name}`, "data-placement": placement };
      const fill = { ...box, ...data, height: box.height * share };
      if (share < 1) fill["data-made"] = "";
      else fill["data-part"] = parts[rank].join();
      if (placement === "whole") return drawn("rect", { ...fill, class: "split-whole" });
      const color = placement === "term" ? `url(#${id}-${rank})` : COLORS[rank];
      return drawn("rect", { ...fill, fill: color });
    }

    /** Of a sum each rank's term on its way to all others. */
    #travelling(done, part, id) {
      const step = this.plan.steps[done];
      if (part <= 0 || !step?.sums) return [];
      const [name] = step.of, eased = part * part * (3 - 2 * part);
      const [, parts] = this.held(done)[name];
      const all = [...Array(this.ranks).keys()];
      return all.flatMap((rank) => all.filter((to) => to !== rank).map((to) => {
        const box = this.#box(rank, name, parts[rank]);
        const x = box.x + (to - rank) * this.across * eased;
        const fill = { ...box, x, fill: `url(#${id}-${rank})`, class: "split-moving" };
        return drawn("rect", fill);
      }));
    }
  }

  class Split extends RankSteps {
    constructor(root) {
      super(root, "split", STEP);
      this.cost = element("p");
      this.start(this.cost);
    }

    chosen(plan) {
      this.ranks = new Ranks(this.data, this.several.value);
      this.cost.textContent = plan.cost;
      return plan.steps.length;
    }

    when(done, isMoving) {
      if (isMoving) return this.ranks.plan.steps[done].title;
      return done ? `after ${done} of ${this.number} steps` : "before";
    }

    draw(done, part, when) {
      this.place.replaceChildren(this.ranks.drawn(done, part, when));
    }

    words(done) {
      const { steps, words } = this.ranks.plan;
      return [done ? `${steps[done - 1].title}. ${words[done]}` : words[0]];
    }

    /** On paper a picture for each moment. */
    strip() {
      const { steps } = this.ranks.plan;
      const all = [...Array(this.number + 1).keys()].map((done) => {
        const title = done ? `${done}. ${steps[done - 1].title}` : "Before";
        const caption = element("figcaption", { textContent: title });
        return element("figure", {}, this.ranks.drawn(done, 0, this.when(done, false)), caption);
      });
      return element("div", { className: "split-strip" }, ...all);
    }
  }

  begin("split", Split);
})();
