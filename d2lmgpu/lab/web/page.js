// In a built page the lab shows records, which lie in the page; the reader chooses one.
"use strict";

/** One record as the lab's source: nobody changes it but the reader, who hides runs. */
class LabRecord {
  constructor(record) {
    const none = { files: {}, live: null, state: null, about: null, why: "", hidden: [] };
    this.numbers = { ...none, ...record };
    this.numbers.names = Object.keys(this.numbers);
  }

  get(name) {
    return this.numbers[name];
  }

  on() {}

  off() {}

  send({ do: what, id, hidden }) {
    const others = this.numbers.hidden.filter((other) => other !== id);
    if (what === "hide") this.numbers.hidden = hidden ? [...others, id] : others;
  }
}

class LabPage {
  static HTML = `
    <form class="lab-record-choice"></form>
    <div class="lab-record"></div>
    <p class="lab-provenance"></p>`;

  constructor(root) {
    this.records = JSON.parse(root.querySelector("script").textContent);
    root.innerHTML = LabPage.HTML;
    [this.form, this.place, this.provenance] = root.children;
    this.form.className += " lab-root";
    this.theme = new LabTheme(this.form, () => {});
    const choose = (key) => (value) => this.#choose({ ...this.chosen, [key]: value });
    this.machine = new LabChoice(this.form, "machine", "Recorded on", choose("machine"));
    this.training = new LabChoice(this.form, "training", "Training", choose("training"));
    this.#choose(this.records[0]);
  }

  /** Show the record of that machine and training; where there is none, the machine's first. */
  #choose({ machine, training }) {
    const ofMachine = this.records.filter((record) => record.machine === machine);
    const record = ofMachine.find((record) => record.training === training) ?? ofMachine[0];
    const options = (names) => [...new Set(names)].map((name) => [name, LabWords.html(name)]);
    this.chosen = record;
    this.machine.show(options(this.records.map((record) => record.machine)), machine);
    this.training.show(options(ofMachine.map((record) => record.training)), record.training);
    this.#show(record);
  }

  #show(record) {
    this.lab?.end();
    this.lab = new Lab(this.place, new LabRecord(record), true);
    const command = `<code>${LabWords.html(record.command)}</code>`;
    this.provenance.innerHTML = `${LabWords.html(record.provenance)}${command}.`;
  }
}

for (const root of document.querySelectorAll(".lab-recorded")) new LabPage(root);
