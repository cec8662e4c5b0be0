// Rows that come one by one: see swimlanes.py, which draws them, and says them in the data.
(() => {
  "use strict";
  const { SAME, element, drawn, Player, begin } = motion;
  const STEP = 1300; // milliseconds

  class Swimlanes {
    constructor(root) {
      this.data = JSON.parse(root.querySelector("script").textContent);
      this.pictures = [...root.querySelectorAll("svg")];
      this.number = this.data.panels[0].words.length;
      const address = settingsInAddress(root), sent = address.read();
      this.player = new Player({
        show: (at) => this.#show(at),
        stops: () => [...Array(this.number + 1).keys()].map((step) => step / this.number),
        length: () => STEP * this.number,
        address,
        settings: () => [],
      });
      this.status = element("div", { className: "swimlanes-said" });
      this.status.setAttribute("role", "status");
      const panels = root.querySelector(".swimlanes-panels");
      panels.before(this.player.controls);
      panels.after(this.status);
      this.player.move(Player.sentIn(sent), false);
      this.player.endOnPaper();
      if (sent) root.scrollIntoView();
    }

    #show(at) {
      const done = Math.floor((at + SAME) * this.number);
      const rest = at * this.number - done;
      const part = rest > SAME * this.number ? rest : 0;
      const words = this.#words(done);
      for (const [i, picture] of this.pictures.entries()) {
        const { name, words: all } = this.data.panels[i];
        const soFar = done ? all.slice(0, done) : [this.data.before];
        picture.setAttribute("aria-label", `${name}. ${soFar.join(" ")}`);
        for (const dot of picture.querySelectorAll(".swimlanes-dot")) dot.remove();
        for (const row of picture.querySelectorAll("[data-row]")) {
          const step = Number(row.dataset.row);
          const isMoving = part > 0 && step === done;
          row.classList.toggle("swimlanes-later", step > done || (step === done && !isMoving));
          if (isMoving) this.#travel(row, part);
        }
      }
      const when = done ? `after ${done} of ${this.number} steps` : "before";
      this.player.say(part ? `step ${done + 1} of ${this.number}` : when, words.join(" "));
      if (this.shown === done) return; // said aloud only when a step is over
      this.shown = done;
      this.status.replaceChildren(...words.map((textContent) => element("p", { textContent })));
    }

    #words(done) {
      if (!done) return [this.data.before];
      const { panels } = this.data;
      if (panels.length === 1) return [panels[0].words[done - 1]];
      return panels.map(({ name, words }) => `${name}: ${words[done - 1]}`);
    }

    /** A dot on each arrow of a row, on its way. */
    #travel(row, part) {
      const eased = part * part * (3 - 2 * part);
      for (const send of row.querySelectorAll("[data-send]")) {
        const path = send.querySelector("path");
        const line = path.getAttribute("d").match(/^M(\S+) (\S+)H([\d.]+)/);
        const [, start, y, end] = line.map(Number);
        send.append(drawn("circle", {
          class: "swimlanes-dot", cx: start + (end - start) * eased, cy: y, r: 4,
          fill: send.getAttribute("stroke"),
        }));
      }
    }
  }

  begin("swimlanes", Swimlanes);
})();
