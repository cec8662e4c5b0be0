// What pictures that move share: their elements, and a clock that plays and is moved by hand.
(() => {
  "use strict";
  // Of parts, ranks or buckets; a contrast of 3 at least with light pages and with dark ones.
  const COLORS = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8C7300", "#7A6FD0", "#00868B", "#B5505F",
  ];
  const PAUSE = 900; // milliseconds between two steps where nothing glides
  const DIGITS = 6; // of a moment in the address: nearer than `SAME` to the one that it names
  const SAME = 1e-5; // parts of all: moments so near are one
  const SVG = "http://www.w3.org/2000/svg";
  const KEYS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };

  const digits = (value) => Number(value.toPrecision(3)).toLocaleString("en");
  function inUnits(value, units) {
    const [unit, scale] = units.find(([, s]) => value >= s) ?? units.at(-1);
    return `${digits(value / scale)} ${unit}`;
  }
  const time = (seconds) => inUnits(seconds, [["s", 1], ["ms", 1e-3], ["µs", 1e-6]]);
  const size = (bytes) => inUnits(bytes, [["MB", 1e6], ["kB", 1e3], ["bytes", 1]]);

  const first = (words) => words[0].toUpperCase() + words.slice(1);

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

  /** A labelled choice; its label is the parent. */
  function select(label, texts, chosen) {
    const field = element("select", { autocomplete: "off" });
    element("label", { textContent: label }).append(field);
    offer(field, texts, chosen);
    return field;
  }

  /** Give a choice these texts; what was chosen stays, where it is one of them. */
  function offer(field, texts, chosen) {
    field.replaceChildren(...texts.map((text) => element("option", { textContent: text })));
    field.value = texts.includes(chosen) ? chosen : texts[0];
  }

  /** A time from `box` to `right`: its frame, with these words, and what of it has passed. */
  function span(box, right, now, frame, words) {
    const passed = Math.max(0, Math.min(right, now) - box.x);
    return [
      drawn("rect", { ...box, width: right - box.x, stroke: "currentColor", ...frame },
        drawn("title", {}, words)),
      drawn("rect", { ...box, width: passed, "fill-opacity": 0.5 }),
    ];
  }

  // A clock from 0 to 1. `show(at)` draws a moment, `stops()` are those between which one steps by
  // hand, `length()` is the milliseconds of all. `address` keeps `settings()`, pairs of a name and
  // a value, with the moment that was chosen.
  class Player {
    constructor({ show, stops, length, address, settings }) {
      Object.assign(this, { show, stops, length, address, settings, now: 0, running: false });
      this.still = matchMedia("(prefers-reduced-motion: reduce)");
      this.clock = element("input", { type: "range", min: 0, max: 1000 });
      this.at = element("span");
      const button = (textContent) => element("button", { type: "button", textContent });
      const [back, next] = ["Back", "Next"].map(button);
      this.play = button("Play");
      this.play.setAttribute("aria-keyshortcuts", "Escape"); // which stops it
      const label = element("label", { className: "explore-clock" }, this.at, this.clock);
      const all = [this.play, back, next, label];
      this.controls = element("div", { className: "explore-controls" }, ...all);
      this.clock.addEventListener("input", () => {
        this.stop();
        this.move(Number(this.clock.value) / 1000);
      });
      this.clock.addEventListener("keydown", (event) => {
        if (!KEYS[event.key]) return;
        event.preventDefault();
        this.step(KEYS[event.key]);
      });
      back.addEventListener("click", () => this.step(-1));
      next.addEventListener("click", () => this.step(1));
      this.play.addEventListener("click", () => (this.running ? this.stop() : this.#run()));
      this.escaped = ({ key }) => key === "Escape" && this.stop();
    }

    /** What the moment is, beside the clock and, with more words, to a screen reader. */
    say(text, words) {
      this.at.textContent = text;
      this.clock.setAttribute("aria-valuetext", `${text}. ${words}`);
    }

    /** The moment that an address was sent with, else the last one. */
    static sentIn(settings) {
      const at = Number(settings?.get("at") ?? 1);
      return at >= 0 && at <= 1 ? at : 1;
    }

    redraw() {
      this.show(this.isPrinted ? 1 : this.now);
    }

    /** On paper the whole of it. */
    endOnPaper() {
      for (const [event, isPrinted] of [["beforeprint", true], ["afterprint", false]]) {
        addEventListener(event, () => {
          this.stop();
          this.isPrinted = isPrinted;
          this.redraw();
        });
      }
    }

    move(at, isTold = true) {
      this.now = at;
      this.clock.value = 1000 * at;
      this.show(at);
      if (isTold && !this.running) this.#tell();
    }

    #tell() {
      this.address.write([...this.settings(), ["at", this.now.toFixed(DIGITS)]]);
    }

    /** To the next moment at which something ends, or to the one before. */
    step(sign) {
      this.stop();
      const near = this.stops().filter((stop) => sign * (stop - this.now) > SAME);
      if (near.length) this.move(sign > 0 ? Math.min(...near) : Math.max(...near));
    }

    stop() {
      if (!this.running) return;
      cancelAnimationFrame(this.frame);
      clearTimeout(this.timer);
      removeEventListener("keydown", this.escaped);
      this.running = false;
      this.play.textContent = "Play";
      this.#tell();
    }

    #run() {
      if (this.now >= 1) this.move(0);
      this.running = true;
      this.play.textContent = "Pause";
      addEventListener("keydown", this.escaped);
      if (this.still.matches) this.#hop();
      else this.#glide(performance.now() - this.now * this.length());
    }

    /** From step to step, for those who want nothing to glide. */
    #hop() {
      this.timer = setTimeout(() => {
        this.step(1);
        if (this.now < 1) this.#run();
      }, PAUSE);
    }

    #glide(begin) {
      this.frame = requestAnimationFrame((when) => {
        this.move(Math.min(Math.max((when - begin) / this.length(), 0), 1));
        if (this.now < 1) this.#glide(begin);
        else this.stop();
      });
    }
  }

  // Steps that ranks take together, for as many ranks as are chosen. A kind draws them: `chosen` is
  // given the plan of so many ranks and returns how many steps it has, `draw(done, part, when)`
  // draws a moment, `when(done, isMoving)` and `words(done)` say it; `strip()`, where there is one,
  // is what stands on paper.
  class RankSteps {
    constructor(root, name, milliseconds) {
      this.root = root;
      this.data = JSON.parse(root.querySelector("script").textContent);
      this.about = root.querySelector("p:last-of-type");
      const address = settingsInAddress(root);
      this.sent = address.read();
      const { plans } = this.data;
      const asked = this.sent?.get("ranks");
      const ranks = asked in plans ? asked : String(this.data.ranks);
      this.several = select("Ranks", Object.keys(plans), ranks);
      this.player = new Player({
        show: (at) => this.#show(at),
        stops: () => [...Array(this.number + 1).keys()].map((step) => step / this.number),
        length: () => milliseconds * this.number,
        address,
        settings: () => [["ranks", this.several.value]],
      });
      this.place = element("div");
      this.status = element("div", { className: `${name}-said` });
      this.status.setAttribute("role", "status");
    }

    /** Show it, with these elements below. */
    start(...below) {
      this.root.replaceChildren(
        element("div", { className: "explore-controls" }, this.several.parentElement),
        this.player.controls, this.place, this.status, ...below, this.about,
      );
      this.several.addEventListener("input", () => this.#choose(1));
      this.#choose(Player.sentIn(this.sent), false);
      this.player.endOnPaper();
      if (this.sent) this.root.scrollIntoView();
    }

    #choose(at, isTold = true) {
      this.player.stop();
      this.number = this.chosen(this.data.plans[this.several.value]);
      this.shown = null;
      this.player.move(at, isTold);
    }

    #show(at) {
      if (this.player.isPrinted && this.strip) {
        this.place.replaceChildren(this.strip());
        return;
      }
      const done = Math.floor((at + SAME) * this.number);
      const part = Math.max(at * this.number - done, 0);
      const isMoving = part > SAME * this.number;
      const when = this.when(done, isMoving);
      this.draw(done, isMoving ? part : 0, when);
      const words = this.words(done);
      this.player.say(first(when), words.join(" "));
      const choice = `${this.several.value} ${done}`;
      if (this.shown === choice) return; // said aloud only when a step is over
      this.shown = choice;
      this.status.replaceChildren(...words.map((textContent) => element("p", { textContent })));
    }
  }

  /** Make a `Kind` of each element with that class, now and once the page is read. */
  function begin(name, Kind) {
    const startAll = () => {
      for (const root of document.querySelectorAll(`.${name}:not([data-started])`)) {
        root.dataset.started = "";
        new Kind(root);
      }
    };
    startAll();
    if (document.readyState === "loading") {
      document.addEventListener("DOMContentLoaded", startAll);
    }
  }

  globalThis.motion = {
    COLORS, SAME, time, size, first, element, drawn, span, select, offer, Player, RankSteps, begin,
  };
})();
