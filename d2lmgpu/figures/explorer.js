// Explorers: look up the answer to what the reader has chosen. See explorer.py for the data.
(() => {
  "use strict";

  function start(root) {
    const { lines, answers, absent } = JSON.parse(root.querySelector("script").textContent);
    const choices = [...root.querySelectorAll("select")];
    const walk = root.querySelector(".explore-steps");
    const [step, back, next] = walk.querySelectorAll("input, button");

    // Answers stand in the order of the controls, the last one changing fastest.
    const indexOf = (chosen) => chosen.reduce((at, i, c) => at * choices[c].length + i, 0);

    function chosenBy(index) {
      const chosen = [];
      for (let c = choices.length - 1; c >= 0; c -= 1) {
        chosen[c] = index % choices[c].length;
        index = Math.floor(index / choices[c].length);
      }
      return chosen;
    }

    // What has no answer leads to the nearest choice that has one: the control that was changed and
    // those before it stay as they are, and of the others as many as can.
    function follow(changed) {
      const wanted = choices.map((choice) => choice.selectedIndex);
      if (changed < 0 || answers[indexOf(wanted)].length) return;
      const agreeing = (chosen) => chosen.filter((i, c) => i === wanted[c]).length;
      const near = answers
        .map((steps, index) => ({ steps, chosen: chosenBy(index) }))
        .filter(({ steps }) => steps.length)
        .map(({ chosen }) => chosen)
        .filter((chosen) => chosen.every((i, c) => c > changed || i === wanted[c]))
        .sort((one, other) => agreeing(other) - agreeing(one))[0];
      near?.forEach((i, c) => {
        choices[c].selectedIndex = i;
      });
    }

    function show(event) {
      const changed = event ? choices.indexOf(event.target) : -1;
      if (changed >= 0) step.value = 0;
      follow(changed);
      const steps = answers[indexOf(choices.map((choice) => choice.selectedIndex))];
      const last = Math.max(steps.length - 1, 0);
      step.max = last;
      const now = Number(step.value);
      walk.querySelector(".explore-at").textContent = `${now} of ${last}`;
      [back.disabled, next.disabled] = [now === 0, now === last];
      const shown = steps.length > 0 ? steps[now] : absent;
      const html = shown.map((number) => lines[number]).join("\n");
      root.querySelector(".explore-answer").innerHTML = html;
    }

    function walkBy(distance) {
      step.value = Number(step.value) + distance;
      show();
    }

    back.addEventListener("click", () => walkBy(-1));
    next.addEventListener("click", () => walkBy(1));
    // Not of the whole root: a chart in the answer has controls of its own.
    for (const controls of root.querySelectorAll(".explore-controls")) {
      controls.addEventListener("input", show);
    }
    show();
  }

  function startAll() {
    for (const root of document.querySelectorAll(".explore:not(.race, [data-started])")) {
      root.dataset.started = "";
      start(root);
    }
  }

  // In a notebook this script comes after each explorer, in the book once before all of them.
  startAll();
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll);
})();
