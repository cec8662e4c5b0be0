// A collective before, between and after: see moves.py for the data, which are the plan's states.
(() => {
  "use strict";
  const { COLORS, SAME, first, element, drawn, select, offer, Player, begin } = motion;
  const WIDTH = 340, TOP = 26, DOWN = 38, TALL = 30, BOX = 5;
  const ROUND = 1800; // milliseconds
  const [LEAVES, COMES] = [0.12, 0.78]; // when of a round what is sent begins to move, and is there

  /** One moment of a plan: `done` rounds are over, and of the next one `part`. */
  class Picture {
    constructor(plan, ranks) {
      Object.assign(this, { plan, ranks });
      this.across = WIDTH / ranks;
      this.wide = Math.min(64, this.across - 4 * BOX);
      this.tall = TOP + ranks * DOWN + BOX;
    }

    #left(rank) {
      return (rank + 0.5) * this.across - this.wide / 2;
    }

    #top(slot) {
      return TOP + BOX + slot * DOWN;
    }

    draw(done, part, label) {
      const { plan, ranks } = this;
      const isLast = done === plan.moves.length;
      const all = [...Array(ranks).keys()];
      const isResult = (rank, slot) => !isLast || plan.result[rank].includes(slot);
      const cells = all.flatMap((rank) => all.map((slot) =>
        this.#cell(this.#left(rank), this.#top(slot), plan.cells[done][rank][slot],
          isResult(rank, slot) ? "" : "moves-left")));
      const share = Math.min(Math.max((part - LEAVES) / (COMES - LEAVES), 0), 1);
      const eased = share * share * (3 - 2 * share);
      const moves = part > 0 ? plan.moves[done] : [];
      const between = (from, to) => from + (to - from) * eased;
      const moving = moves.map(([source, from, target, to]) => this.#cell(
        between(this.#left(source), this.#left(target)),
        between(this.#top(from), this.#top(to)) - 5 * Math.sin(Math.PI * eased),
        plan.cells[done][source][from], "moves-moving",
      ));
      const size = { viewBox: `0 0 ${WIDTH} ${this.tall}`, role: "img", "aria-label": label };
      return drawn("svg", size, ...all.flatMap((rank) => this.#rank(rank)), ...cells, ...moving);
    }

    #rank(rank) {
      const box = {
        x: rank * this.across + BOX, y: TOP - 2, rx: 8, width: this.across - 2 * BOX,
        height: this.tall - TOP, fill: "none", stroke: COLORS[rank], "stroke-width": 2,
      };
      const at = { x: (rank + 0.5) * this.across, y: TOP - 10, class: "moves-rank" };
      return [drawn("rect", box), drawn("text", at, `rank ${rank}`)];
    }

    /** A slot: a band of each rank whose numbers are in the sum, and its name. */
    #cell(x, y, [letter, bits], kind) {
      const box = { x, y, width: this.wide, height: TALL };
      const from = COLORS.flatMap((_, rank) => (bits >> rank & 1 ? [rank] : []));
      const group = { class: `moves-cell ${kind}`, "data-holds": `${letter}${from.join("+")}` };
      if (!from.length) {
        const empty = { class: "moves-cell", "data-holds": "" };
        return drawn("g", empty, drawn("rect", { ...box, class: "moves-empty" }));
      }
      const width = this.wide / from.length;
      const bands = from.map((rank, i) => drawn("rect", {
        x: x + i * width, y, width, height: TALL, fill: COLORS[rank], "fill-opacity": 0.5,
      }));
      const name = drawn("text", { x: x + this.wide / 2, y: y + 19 }, letter,
        drawn("tspan", { dy: 4 }, from.join("+")));
      return drawn("g", group,
        drawn("rect", { ...box, class: "moves-ground" }), ...bands,
        drawn("rect", { ...box, class: "moves-frame" }), name);
    }
  }

  class Moves {
    constructor(root) {
      this.data = JSON.parse(root.querySelector("script").textContent);
      const address = settingsInAddress(root);
      const sent = address.read();
      const names = Object.keys(this.data.collectives);
      const { plans } = this.data.collectives[names[0]];
      const ranks = sent?.get("ranks") in plans ? sent.get("ranks") : String(this.data.ranks);
      this.choices = {
        collective: select("Collective", names, sent?.get("collective")),
        ranks: select("Ranks", Object.keys(plans), ranks),
        algorithm: select("Algorithm", [""], ""),
      };
      this.player = new Player({
        show: (at) => this.#show(at),
        stops: () => this.plan.cells.map((_, round) => round / this.rounds),
        length: () => ROUND * this.rounds,
        address,
        settings: () => Object.entries(this.choices).map(([name, { value }]) => [name, value]),
      });
      [this.call, this.does, this.pair, this.strip, this.status] =
        ["p", "p", "div", "div", "div"].map((tag) => element(tag));
      this.pair.className = "moves-pair";
      this.strip.className = "moves-strip";
      this.status.className = "moves-said";
      this.status.setAttribute("role", "status");
      const labels = Object.values(this.choices).map(({ parentElement }) => parentElement);
      root.replaceChildren(
        element("div", { className: "explore-controls" }, ...labels), this.call, this.does,
        this.player.controls, this.pair, this.status, this.strip,
      );
      this.choices.collective.parentElement.hidden = names.length === 1;
      for (const field of Object.values(this.choices)) {
        field.addEventListener("input", () => this.#choose(1));
      }
      this.#choose(Player.sentIn(sent), sent?.get("algorithm"), false);
      if (sent) root.scrollIntoView();
    }

    #choose(at, algorithm = this.choices.algorithm.value, isTold = true) {
      this.player.stop();
      const name = this.choices.collective.value;
      const ranks = Number(this.choices.ranks.value);
      const { call, does, plans } = this.data.collectives[name];
      const menu = this.choices.algorithm;
      const names = Object.keys(plans[ranks]);
      offer(menu, names, algorithm);
      menu.parentElement.hidden = names.length === 1;
      this.plan = plans[ranks][menu.value];
      this.rounds = this.plan.moves.length;
      this.picture = new Picture(this.plan, ranks);
      this.title = `${name} over ${ranks} ranks`;
      this.call.replaceChildren(element("code", { textContent: call }));
      this.does.textContent = `${does} Over ${ranks} ranks, ${menu.value}: ${this.plan.cost}`;
      this.now = element("div");
      this.pair.replaceChildren(this.#still(0), this.now);
      this.strip.replaceChildren(...this.plan.cells.map((_, round) => this.#still(round)));
      this.shown = null;
      this.player.move(at, isTold);
    }

    /** In words, after so many rounds; `isMoving`: the next one goes on. */
    #when(round, isMoving = false) {
      if (isMoving) return `in round ${round + 1} of ${this.rounds}`;
      if (round === 0) return "before";
      return round === this.rounds ? "after" : `after round ${round} of ${this.rounds}`;
    }

    #still(round) {
      const label = `${this.title}, ${this.#when(round)}. ${this.plan.words[round].join(" ")}`;
      const title = element("strong", { textContent: first(this.#when(round)) });
      return element("div", {}, title, this.picture.draw(round, 0, label));
    }

    #show(at) {
      const { plan, rounds } = this;
      const done = Math.floor((at + SAME) * rounds);
      const part = Math.max(at * rounds - done, 0);
      const isMoving = part > SAME * rounds;
      const when = this.#when(done, isMoving);
      const words = plan.words[done].join(" ");
      this.now.replaceChildren(
        element("strong", { textContent: first(when) }),
        this.picture.draw(done, isMoving ? part : 0, `${this.title}, ${when}. ${words}`),
      );
      this.player.say(first(when), words);
      if (this.shown === done) return; // said aloud only when a round is over
      this.shown = done;
      const lines = plan.words[done].map((textContent) => element("li", { textContent }));
      const sent = done ? `Round ${done} of ${rounds}: ${plan.sent[done - 1]}.` : "";
      const [heading, last] = [`${first(this.#when(done))}:`, sent]
        .map((textContent) => element("p", { textContent }));
      this.status.replaceChildren(heading, element("ul", {}, ...lines), last);
    }
  }

  begin("moves", Moves);
})();
