// Two allreduces on one clock: see race.py for the data, which are the plans' rounds and messages.
(() => {
  "use strict";
  const { COLORS, SAME, time, size, element, drawn, select, Player, begin } = motion;
  const SIZE = 340, ACROSS = 116, DOWN = 140, TALL = 20;
  const cellOf = (devices) => Math.min(13, 92 / devices); // eight devices have eight of them each
  const PLAYED = 9000; // milliseconds for the slower of both
  const MOST_LABELS = 14; // links: more numbers would cover each other

  /** One plan at any moment: what each node holds, what travels, and the bytes of each link. */
  class Plan {
    constructor({ seconds, rounds, nodes }, devices) {
      Object.assign(this, { ends: seconds, rounds, nodes, devices });
      this.total = seconds.at(-1);
      let held = Array.from({ length: nodes }, (_, node) =>
        Array.from({ length: devices }, () => (node < devices ? 1 : 0)));
      let sent = new Map(); // "source target" -> bytes
      this.states = [{ held, sent }];
      for (const messages of rounds) {
        const [before, after] = [held, held.map((row) => [...row])];
        sent = new Map(sent);
        for (const [source, target, first, stop, adds, bytes] of messages) {
          for (let part = first; part < stop; part += 1) {
            after[target][part] = before[source][part] + (adds ? after[target][part] : 0);
          }
          const link = `${source} ${target}`;
          sent.set(link, (sent.get(link) ?? 0) + bytes);
        }
        held = after;
        this.states.push({ held, sent });
      }
      this.links = [...sent.keys()];
      this.most = Math.max(...sent.values());
    }

    /** {done: rounds that are over, part: how far the one that goes on is, from 0 to 1}. */
    at(now) {
      let done = 0;
      while (done < this.rounds.length && now >= this.ends[done + 1] * (1 - SAME)) done += 1;
      const [from, to] = [this.ends[done], this.ends[done + 1]];
      return { done, part: done < this.rounds.length ? (now - from) / (to - from) : 0 };
    }

    words(now) {
      const { done } = this.at(now);
      const all = this.rounds.length;
      if (done === all) return `done after ${time(this.total)}, ${all} rounds`;
      return `round ${done + 1} of ${all}`;
    }
  }

  class Panel {
    constructor(name, plan, most) {
      Object.assign(this, { name, plan, most });
      this.svg = drawn("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, width: "100%", role: "img" });
      this.progress = element("progress", { max: plan.total });
      this.progress.setAttribute("aria-label", `${name}: how far it is`);
      this.status = element("p");
      const title = element("strong", { textContent: name });
      this.box = element("div", {}, title, this.progress, this.status, this.svg);
      this.places = Array.from({ length: plan.nodes }, (_, node) => {
        if (node >= plan.devices) return [SIZE / 2, SIZE / 2];
        const turn = (2 * Math.PI * node) / plan.devices;
        return [SIZE / 2 + ACROSS * Math.sin(turn), SIZE / 2 + 6 - DOWN * Math.cos(turn)];
      });
    }

    /** A point on a link, beside the one of the other direction. */
    #on(link, part) {
      const [[x, y], [u, v]] = link.split(" ").map((node) => this.places[node]);
      const length = Math.hypot(u - x, v - y);
      const [dx, dy] = [(u - x) / length, (v - y) / length];
      const along = 0.16 * length + part * 0.68 * length;
      return [x + along * dx - 6 * dy, y + along * dy + 6 * dx];
    }

    draw(now) {
      const { plan } = this;
      const { done, part } = plan.at(now);
      const { held, sent } = plan.states[done];
      const moving = plan.rounds[done] ?? [];
      const bytes = new Map(sent);
      for (const [source, target, , , , of] of moving) {
        const link = `${source} ${target}`;
        bytes.set(link, (bytes.get(link) ?? 0) + part * of);
      }
      const labels = [], lines = plan.links.map((link) => {
        const [[x1, y1], [x2, y2]] = [this.#on(link, 0), this.#on(link, 1)];
        const passed = bytes.get(link) ?? 0;
        const look = { x1, y1, x2, y2, "stroke-width": 1.5 + (6 * passed) / this.most };
        if (passed && plan.links.length <= MOST_LABELS) {
          const [x, y] = this.#on(link, 0.3);
          labels.push(drawn("text", { x, y: y + 4, class: "race-bytes" }, size(passed)));
        }
        const title = drawn("title", {}, `${link.replace(" ", " to ")}: ${size(passed)}`);
        return drawn("line", { ...look, class: passed ? "used" : "" }, title);
      });
      this.svg.replaceChildren(
        ...lines,
        ...labels,
        ...this.places.flatMap((place, node) => this.#node(place, node, held[node])),
        ...moving.flatMap((message) => this.#message(message, part)),
      );
      const busiest = Math.max(0, ...bytes.values());
      this.progress.value = now;
      const links = `${plan.links.length} links, ${size(busiest)} over the busiest`;
      this.status.textContent = `${plan.words(now)}; ${links}`;
      const complete = held.slice(0, plan.devices).flat();
      const sums = complete.filter((count) => count === plan.devices).length;
      const label = `${sums} of ${complete.length} numbers on the devices are sums of all`;
      this.svg.setAttribute("aria-label", `${this.name}: ${plan.words(now)}; ${label}.`);
    }

    #node([x, y], node, counts) {
      const { devices } = this.plan;
      const cell = cellOf(devices);
      const left = x - (counts.length * cell) / 2;
      const name = node < devices ? `device ${node}` : "host";
      const cells = counts.flatMap((count, part) => {
        const at = left + part * cell;
        const full = (TALL * count) / devices;
        const fill = { fill: COLORS[part], "fill-opacity": 0.5, stroke: "none" };
        return [
          drawn("rect", { x: at, y: y + TALL / 2 - full, width: cell, height: full, ...fill }),
          drawn("rect", { x: at, y: y - TALL / 2, width: cell, height: TALL, fill: "none" }),
          drawn("text", { x: at + cell / 2, y: y + 4 }, String(count)),
        ];
      });
      return [drawn("text", { x, y: y - TALL / 2 - 5 }, name), ...cells];
    }

    /** The parts of a message, as squares that travel together. */
    #message([source, target, first, stop], part) {
      const [x, y] = this.#on(`${source} ${target}`, part);
      const side = 9;
      return Array.from({ length: stop - first }, (_, i) => drawn("rect", {
        x: x + (i - (stop - first) / 2) * side,
        y: y - side / 2,
        width: side,
        height: side,
        fill: COLORS[first + i],
      }));
    }
  }

  class Race {
    constructor(root) {
      this.root = root;
      const { sizes, start } = JSON.parse(root.querySelector("script").textContent);
      this.sizes = sizes;
      const address = settingsInAddress(root);
      const about = root.querySelector("p:last-of-type");
      const names = Object.keys(sizes[start.size][start.devices]);
      const devices = Object.keys(sizes[start.size]);
      const sent = address.read();
      const choice = (label, texts, name) => {
        const asked = sent?.get(name);
        return select(label, texts, texts.includes(asked) ? asked : String(start[name]));
      };
      this.choices = {
        first: choice("Algorithm", names, "first"),
        second: choice("against", names, "second"),
        devices: choice("Devices", devices, "devices"),
        size: choice("Gradient", Object.keys(sizes), "size"),
      };
      this.player = new Player({
        show: (at) => this.#show(at),
        stops: () => this.shown.flatMap(({ plan }) => plan.ends.map((end) => end / this.total)),
        length: () => PLAYED,
        address,
        settings: () => Object.entries(this.choices).map(([name, { value }]) => [name, value]),
      });
      this.panels = element("div", { className: "race-panels" });
      this.status = element("p");
      this.status.setAttribute("role", "status");
      const labels = Object.values(this.choices).map(({ parentElement }) => parentElement);
      root.replaceChildren(
        element("div", { className: "explore-controls" }, ...labels),
        this.player.controls,
        this.panels,
        this.status,
        about,
      );
      for (const field of Object.values(this.choices)) {
        field.addEventListener("input", () => this.#choose(0));
      }
      const at = Number(sent?.get("at") ?? 0.1);
      this.#choose(at >= 0 && at <= 1 ? at : 0, false);
      if (sent) root.scrollIntoView();
    }

    #choose(at, isTold = true) {
      this.player.stop();
      const { first, second, devices, size: of } = this.choices;
      const plans = this.sizes[of.value][devices.value];
      const both = [first.value, second.value].map((name) => [
        name, new Plan(plans[name], Number(devices.value)),
      ]);
      const most = Math.max(...both.map(([, plan]) => plan.most));
      this.shown = both.map(([name, plan]) => new Panel(name, plan, most));
      this.total = Math.max(...both.map(([, plan]) => plan.total));
      this.panels.replaceChildren(...this.shown.map(({ box }) => box));
      this.player.move(at, isTold);
    }

    /** Draw the moment `at`, in parts of what the slower of both takes. */
    #show(at) {
      const now = at * this.total;
      for (const panel of this.shown) panel.draw(now);
      const words = this.shown.map(({ name, plan }) => `${name}: ${plan.words(now)}`).join("; ");
      this.player.say(`After ${now ? time(now) : "0 s"} of ${time(this.total)}, modelled`, words);
      // Said aloud only when a round is over, and not at each picture of a run.
      if (this.status.textContent !== `${words}.`) this.status.textContent = `${words}.`;
    }
  }

  begin("race", Race);
})();
