// Two allreduces on one clock: see race.py for the data, which are the plans' rounds and messages.
(() => {
  "use strict";
  // Of the parts of a gradient; a contrast of 3 at least with light pages and with dark ones.
  const COLORS = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8C7300", "#7A6FD0", "#00868B", "#B5505F",
  ];
  const SIZE = 340, ACROSS = 116, DOWN = 140, TALL = 20;
  const cellOf = (devices) => Math.min(13, 92 / devices); // eight devices have eight of them each
  const PLAYED = 9000; // milliseconds for the slower of both
  const PAUSE = 900; // milliseconds between two rounds where nothing glides
  const MOST_LABELS = 14; // links: more numbers would cover each other
  const SVG = "http://www.w3.org/2000/svg";

  const digits = (value) => Number(value.toPrecision(3)).toLocaleString("en");
  function inUnits(value, units) {
    const [unit, scale] = units.find(([, s]) => value >= s) ?? units.at(-1);
    return `${digits(value / scale)} ${unit}`;
  }
  const time = (seconds) => inUnits(seconds, [["s", 1], ["ms", 1e-3], ["µs", 1e-6]]);
  const size = (bytes) => inUnits(bytes, [["MB", 1e6], ["kB", 1e3], ["bytes", 1]]);

  function element(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  function drawn(tag, attributes, ...children) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

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
      while (done < this.rounds.length && now >= this.ends[done + 1] * (1 - 1e-9)) done += 1;
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
      this.said = element("p");
      const title = element("strong", { textContent: name });
      this.box = element("div", {}, title, this.progress, this.said, this.svg);
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
      this.said.textContent = `${plan.words(now)}; ${links}`;
      const complete = held.slice(0, plan.devices).flat();
      const sums = complete.filter((count) => count === plan.devices).length;
      const told = `${sums} of ${complete.length} numbers on the devices are sums of all`;
      this.svg.setAttribute("aria-label", `${this.name}: ${plan.words(now)}; ${told}.`);
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
      this.address = settingsInAddress(root);
      this.still = matchMedia("(prefers-reduced-motion: reduce)");
      const about = root.querySelector("p:last-of-type");
      const names = Object.keys(sizes[start.size][start.devices]);
      const devices = Object.keys(sizes[start.size]);
      this.choices = {
        first: this.#select("Algorithm", names, start.first),
        second: this.#select("against", names, start.second),
        devices: this.#select("Devices", devices, String(start.devices)),
        size: this.#select("Gradient", Object.keys(sizes), start.size),
      };
      this.clock = element("input", { type: "range", min: 0, max: 1000 });
      this.at = element("span");
      this.play = element("button", { type: "button", textContent: "Play" });
      const [back, next] = ["Back", "Next"].map((textContent) =>
        element("button", { type: "button", textContent }));
      const clock = element("label", { className: "race-clock" }, this.at, this.clock);
      this.panels = element("div", { className: "race-panels" });
      this.said = element("p");
      this.said.setAttribute("role", "status");
      const labels = Object.values(this.choices).map((choice) => choice.parentElement);
      root.replaceChildren(
        element("div", { className: "explore-controls" }, ...labels),
        element("div", { className: "explore-controls" }, this.play, back, next, clock),
        this.panels,
        this.said,
        about,
      );
      for (const choice of Object.values(this.choices)) {
        choice.addEventListener("input", () => this.#choose(0));
      }
      this.clock.addEventListener("input", () => this.#move(Number(this.clock.value) / 1000));
      back.addEventListener("click", () => this.#step(-1));
      next.addEventListener("click", () => this.#step(1));
      this.play.addEventListener("click", () => (this.running ? this.#stop() : this.#run()));
      const sent = this.address.read();
      for (const [name, choice] of Object.entries(this.choices)) {
        const offered = [...choice.options].map(({ text }) => text);
        if (offered.includes(sent?.get(name))) choice.value = sent.get(name);
      }
      const at = Number(sent?.get("at") ?? 0.1);
      this.#choose(at >= 0 && at <= 1 ? at : 0, false);
      if (sent) root.scrollIntoView();
    }

    #select(label, texts, chosen) {
      const select = element("select", { autocomplete: "off" },
        ...texts.map((text) => element("option", { textContent: text })));
      select.value = chosen;
      element("label", { textContent: label }).append(select);
      return select;
    }

    #choose(at, isTold = true) {
      this.#stop();
      const { first, second, devices, size: of } = this.choices;
      const plans = this.sizes[of.value][devices.value];
      const both = [first.value, second.value].map((name) => [
        name, new Plan(plans[name], Number(devices.value)),
      ]);
      const most = Math.max(...both.map(([, plan]) => plan.most));
      this.shown = both.map(([name, plan]) => new Panel(name, plan, most));
      this.total = Math.max(...both.map(([, plan]) => plan.total));
      this.panels.replaceChildren(...this.shown.map(({ box }) => box));
      this.#move(at, isTold);
    }

    /** Show the moment `at`, in parts of what the slower of both takes. */
    #move(at, isTold = true) {
      this.now = at;
      const now = at * this.total;
      for (const panel of this.shown) panel.draw(now);
      this.clock.value = 1000 * at;
      this.at.textContent = `After ${now ? time(now) : "0 s"} of ${time(this.total)}, modelled`;
      const words = this.shown.map(({ name, plan }) => `${name}: ${plan.words(now)}`).join("; ");
      this.clock.setAttribute("aria-valuetext", `${this.at.textContent}. ${words}`);
      // Said aloud only when a round is over, and not at each picture of a run.
      if (this.said.textContent !== `${words}.`) this.said.textContent = `${words}.`;
      if (isTold && !this.running) this.#tell();
    }

    #tell() {
      const chosen = Object.entries(this.choices).map(([name, { value }]) => [name, value]);
      this.address.write([...chosen, ["at", this.now.toFixed(3)]]);
    }

    /** To where a round of one of both ends, or the end before. */
    #step(way) {
      this.#stop();
      const ends = this.shown.flatMap(({ plan }) => plan.ends.map((end) => end / this.total));
      const near = ends.filter((end) => way * (end - this.now) > 1e-6);
      if (near.length) this.#move(way > 0 ? Math.min(...near) : Math.max(...near));
    }

    #run() {
      if (this.now >= 1) this.#move(0);
      this.running = true;
      this.play.textContent = "Pause";
      if (this.still.matches) this.#hop();
      else this.#glide(performance.now() - this.now * PLAYED);
    }

    /** From round to round, for those who want nothing to glide. */
    #hop() {
      this.next = setTimeout(() => {
        this.#step(1);
        if (this.now < 1) this.#run();
      }, PAUSE);
    }

    #glide(begin) {
      this.next = requestAnimationFrame((when) => {
        this.#move(Math.min(Math.max((when - begin) / PLAYED, 0), 1));
        if (this.now < 1) this.#glide(begin);
        else this.#stop();
      });
    }

    #stop() {
      if (!this.running) return;
      (this.still.matches ? clearTimeout : cancelAnimationFrame)(this.next);
      this.running = false;
      this.play.textContent = "Play";
      this.#tell();
    }
  }

  function startAll() {
    for (const root of document.querySelectorAll(".race:not([data-started])")) {
      root.dataset.started = "";
      new Race(root);
    }
  }

  startAll();
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll);
})();
