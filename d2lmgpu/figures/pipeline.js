// Who of a pipeline does what when: see pipeline.py for the data, which are the timetables.
(() => {
  "use strict";
  const { COLORS, SAME, element, drawn, span, select, Player, begin } = motion;
  const LEFT = 48, RIGHT = 50, TOP = 20, ROW = 30, TALL = 24, FOOT = 24; // pixels
  const WIDTHS = [300, 720];
  const LETTER = 7; // pixels, of a digit: a number that has no room is not written
  const PLAYED = 9000; // milliseconds of a timetable
  const KINDS = ["F", "B", "I", "W"];

  const units = (value) => String(Number(value.toFixed(2)));
  // Which colours: of a rank's first stage, and of its others.
  const PAIRS = { F: [0, 5], B: [1, 3], I: [1, 3], W: [2, 6] };
  const colorOf = (kind, isFirst) => COLORS[PAIRS[kind][isFirst ? 0 : 1]];

  /** One timetable: what each rank computes at a moment, and what it keeps. */
  class Plan {
    constructor({ spans, idle, kept }, names) {
      Object.assign(this, { ranks: spans, idle, most: kept, names });
      this.total = Math.max(...spans.flat().map(([, , , , end]) => end));
      this.several = new Set(spans[0].map(([, , stage]) => stage)).size > 1;
      this.ends = [...new Set(spans.flat().map(([, , , , end]) => end))];
    }

    words([kind, micro, stage]) {
      const where = this.several ? `, stage ${stage}` : "";
      return `${this.names[kind]}, micro-batch ${micro}${where}`;
    }

    /** A sentence of what a rank does. */
    does(rank, now) {
      const at = now + SAME * this.total;
      const going = this.ranks[rank].find(([, , , start, end]) => start <= at && at < end);
      if (going) return this.words(going);
      return at < this.ranks[rank].at(-1)[4] ? "waits" : "is done";
    }

    /** Micro-batches whose forward pass has begun and whose backward pass is not over. */
    kept(rank, now) {
      const at = now + SAME * this.total;
      return this.ranks[rank].reduce((sum, [kind, , , start, end]) =>
        sum + Number(kind === "F" && start <= at) -
          Number((kind === "B" || kind === "W") && end <= at), 0);
    }
  }

  class Pipeline {
    constructor(root) {
      this.root = root;
      this.data = JSON.parse(root.querySelector("script").textContent);
      const address = settingsInAddress(root);
      const sent = address.read();
      const about = root.querySelector("p:last-of-type");
      const { plans, start } = this.data;
      const [byRanks] = Object.values(plans);
      const [byNumber] = Object.values(byRanks);
      const choice = (label, texts, name) => {
        const asked = sent?.get(name);
        return select(label, texts, texts.includes(asked) ? asked : start[name]);
      };
      this.choices = {
        schedule: choice("Schedule", Object.keys(plans), "schedule"),
        ranks: choice("Ranks", Object.keys(byRanks), "ranks"),
        micro: choice("Micro-batches", Object.keys(byNumber), "micro"),
      };
      this.player = new Player({
        show: (at) => this.#show(at),
        stops: () => [0, ...this.plan.ends.map((end) => end / this.plan.total)],
        length: () => PLAYED,
        address,
        settings: () => Object.entries(this.choices).map(([name, { value }]) => [name, value]),
      });
      this.place = element("div");
      this.key = element("p", { className: "pipeline-key" });
      this.status = element("p");
      this.status.setAttribute("role", "status");
      const labels = Object.values(this.choices).map(({ parentElement }) => parentElement);
      root.replaceChildren(
        element("div", { className: "explore-controls" }, ...labels),
        this.player.controls, this.place, this.key, this.status, about,
      );
      for (const field of Object.values(this.choices)) {
        field.addEventListener("input", () => this.#choose(1));
      }
      this.#choose(Player.sentIn(sent), false);
      this.player.endOnPaper();
      new ResizeObserver(() => this.player.redraw()).observe(root);
      if (sent) root.scrollIntoView();
    }

    #choose(at, isTold = true) {
      this.player.stop();
      const { schedule, ranks, micro } = this.choices;
      const { plans, names } = this.data;
      this.plan = new Plan(plans[schedule.value][ranks.value][micro.value], names);
      const { plan } = this;
      const kinds = KINDS.filter((kind) => plan.ranks[0].some(([of]) => of === kind));
      const swatch = (kind, isFirst, text) => {
        const square = element("i");
        square.style.background = colorOf(kind, isFirst);
        return element("span", {}, square, text);
      };
      this.key.replaceChildren(...kinds.flatMap((kind) => {
        const name = names[kind];
        if (!plan.several) return [swatch(kind, true, name)];
        return [swatch(kind, true, `${name}, first stage of a rank`),
          swatch(kind, false, `${name}, its other stage`)];
      }));
      this.status.textContent = `${schedule.value}, ranks: ${ranks.value}, micro-batches: ` +
        `${micro.value}. Each rank is idle ${Math.round(100 * plan.idle)} % of the time. ` +
        `At most the ranks keep ${plan.most.join(", ")} micro-batches` +
        `${plan.several ? ", each of one of their stages" : ""}. Modelled.`;
      this.player.move(at, isTold);
    }

    #show(at) {
      const { plan } = this;
      const now = at * plan.total;
      const width = Math.min(Math.max(this.root.clientWidth, WIDTHS[0]), WIDTHS[1]);
      const x = (when) => LEFT + (when / plan.total) * (width - LEFT - RIGHT);
      const floor = TOP + ROW * plan.ranks.length;
      const boxes = plan.ranks.flatMap((spans, rank) =>
        spans.flatMap((span) => this.#box(span, TOP + ROW * rank, now, x)));
      const beside = plan.ranks.flatMap((_, rank) => {
        const y = TOP + ROW * rank + 17;
        const kept = `${plan.kept(rank, now)} of ${plan.most[rank]}`;
        return [
          drawn("text", { x: LEFT - 6, y, class: "pipeline-end" }, `rank ${rank}`),
          drawn("text", { x: width - 2, y, class: "pipeline-end" }, kept),
        ];
      });
      const words = plan.ranks.map((_, rank) =>
        `rank ${rank} ${this.#does(rank, now)}, keeps ${plan.kept(rank, now)}`).join("; ");
      const after = `After ${units(now)} of ${units(plan.total)}`;
      const label = `${this.choices.schedule.value}, ${after.toLowerCase()}: ${words}.`;
      const size = {
        viewBox: `0 0 ${width} ${floor + FOOT}`, width, role: "img", "aria-label": label,
      };
      const line = { x1: x(now), x2: x(now), y1: TOP - 4, y2: floor, class: "pipeline-now" };
      const axis = { x1: LEFT, x2: width - RIGHT, y1: floor, y2: floor, class: "pipeline-axis" };
      this.place.replaceChildren(drawn("svg", size,
        drawn("text", { x: width - 2, y: 13, class: "pipeline-end" }, "kept"),
        ...beside, ...boxes, drawn("line", axis), drawn("line", line),
        drawn("text", { x: LEFT, y: floor + 17 }, "0"),
        drawn("text", { x: width - RIGHT, y: floor + 17, class: "pipeline-end" },
          units(plan.total)),
      ));
      this.player.say(after, words);
    }

    #does(rank, now) {
      const does = this.plan.does(rank, now);
      return does === "waits" || does === "is done" ? does : `computes: ${does}`;
    }

    #box(operation, y, now, x) {
      const [kind, micro, stage, start, end] = operation;
      const [left, right] = [x(start), x(end)];
      const fill = colorOf(kind, stage < this.plan.ranks.length);
      const at = { x: left, y, height: TALL, fill };
      const frame = { "fill-opacity": 0.12, "stroke-width": 0.75, class: `pipeline-${kind}` };
      const words = `${this.plan.words(operation)}: ${units(start)} to ${units(end)}`;
      const boxes = span(at, right, x(now), frame, words);
      if (String(micro).length * LETTER < right - left - 1) {
        const place = { x: (left + right) / 2, y: y + 17, class: "pipeline-name" };
        boxes.push(drawn("text", place, String(micro)));
      }
      return boxes;
    }
  }

  begin("pipeline", Pipeline);
})();
