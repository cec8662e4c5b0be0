// In a built page the lab shows records, which lie beside it in the page, and the reader chooses one.
"use strict";

/** One record as the lab's source: nobody changes it but the reader, who hides runs and names them. */
class LabRecord {
  constructor(record) {
    const first = [];
    for (const run of record.runs) {
      if (run.row === null || !first.some((other) => other.row === run.row)) first.push(run);
    }
    const kept = { files: {}, live: null, state: null, about: null, why: "", hidden: [] };
    this.numbers = { ...kept, ...record, runs: first };
  }

  get(name) {
    return this.numbers[name];
  }

  on() {}

  off() {}

  send({ do: what, id, hidden }) {
    const others = this.numbers.hidden.filter((one) => one !== id);
    if (what === "hide") this.numbers.hidden = hidden ? [...others, id] : others;
  }
}

class LabPage {
  static HTML = `
    <form class="lab-record-choice"></form>
    <div class="lab-record"></div>
    <p class="lab-provenance"></p>`;

  constructor(root) {
    const records = JSON.parse(root.querySelector("script").textContent);
    root.innerHTML = LabPage.HTML;
    [this.form, this.place, this.provenance] = root.children;
    this.form.className += " lab-root";
    const choice = new LabChoice(this.form, "records", "Recorded on", (name) => {
      this.#show(records.find((record) => record.name === name));
    });
    choice.root.hidden = records.length < 2;
    choice.show(records.map(({ name }) => [name, LabWords.html(name)]), records[0].name);
    this.#show(records[0]);
  }

  #show(record) {
    this.lab?.end();
    this.lab = new Lab(this.place, new LabRecord(record), true);
    const command = `<code>${LabWords.html(record.command)}</code>`;
    this.provenance.innerHTML = `${LabWords.html(record.provenance)}; made again by ${command}.`;
  }
}

for (const root of document.querySelectorAll(".lab-recorded")) new LabPage(root);
