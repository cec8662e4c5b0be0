// Explorers: look up the answer to what the reader has chosen. See explorer.py for the data.
(() => {
  "use strict";

  /** A list or a slider: which of its texts is chosen. */
  class Choice {
    constructor(field) {
      this.field = field;
      this.label = field.parentElement.firstChild.textContent.trim();
      const { texts } = field.dataset;
      this.texts = texts ? JSON.parse(texts) : [...field.options].map(({ text }) => text);
    }

    get index() {
      return this.field.selectedIndex ?? Number(this.field.value);
    }

    set index(index) {
      if (this.field.options) this.field.selectedIndex = index;
      else this.field.value = index;
    }

    get text() {
      return this.texts[this.index];
    }

    /** A slider says its text, not its place. */
    tell() {
      if (this.field.options) return;
      this.field.ariaValueText = this.text;
      this.field.previousElementSibling.textContent = this.text;
    }
  }

  function start(root) {
    const { lines, answers, absent } = JSON.parse(root.querySelector("script").textContent);
    const fields = [...root.querySelectorAll(".explore-controls :is(select, input)")];
    const choices = fields.map((field) => new Choice(field));
    const address = settingsInAddress(root);

    // Answers stand in the order of the controls, the last one changing fastest.
    const indexOf = (chosen) => chosen.reduce((at, i, c) => at * choices[c].texts.length + i, 0);

    function chosenBy(index) {
      const chosen = [];
      for (let c = choices.length - 1; c >= 0; c -= 1) {
        chosen[c] = index % choices[c].texts.length;
        index = Math.floor(index / choices[c].texts.length);
      }
      return chosen;
    }

    // What has no answer leads to the nearest choice that has one: the control that was changed and
    // those before it stay as they are, and of the others as many as can.
    function follow(changed) {
      const wanted = choices.map(({ index }) => index);
      if (changed < 0 || answers[indexOf(wanted)]) return;
      const agreeing = (chosen) => chosen.filter((i, c) => i === wanted[c]).length;
      const near = answers
        .map((answer, index) => ({ answer, chosen: chosenBy(index) }))
        .filter(({ answer }) => answer)
        .map(({ chosen }) => chosen)
        .filter((chosen) => chosen.every((i, c) => c > changed || i === wanted[c]))
        .sort((a, b) => agreeing(b) - agreeing(a))[0];
      near?.forEach((i, c) => {
        choices[c].index = i;
      });
    }

    function show(event) {
      follow(event ? fields.indexOf(event.target) : -1);
      for (const choice of choices) choice.tell();
      const shown = answers[indexOf(choices.map(({ index }) => index))] ?? absent;
      const html = shown.map((number) => lines[number]).join("\n");
      root.querySelector(".explore-answer").innerHTML = html;
      if (event) address.write(choices.map(({ label, text }) => [label, text]));
    }

    const sent = address.read();
    for (const choice of choices) {
      const index = choice.texts.indexOf(sent?.get(choice.label));
      if (index >= 0) choice.index = index;
    }
    // Not of the whole root: a chart in the answer has controls of its own.
    root.querySelector(".explore-controls").addEventListener("input", show);
    show();
    if (sent) root.scrollIntoView();
  }

  function startAll() {
    for (const root of document.querySelectorAll(".explore:not(.moving, [data-started])")) {
      root.dataset.started = "";
      start(root);
    }
  }

  // In a notebook this script comes after each explorer, in the book once before all of them.
  startAll();
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll);
})();
