// The line to the kernel: a source of numbers that says in words when nobody answers at its end.
"use strict";

class LabLine {
  static PATIENCE = 1000; // milliseconds; a kernel that does nothing else answers sooner
  static WORDS = `The kernel has not answered.
    It is busy with a cell; or it was restarted, or has ended: then run this cell again.`;

  /** `place` is where the words stand; `model` is the widget's, and each message gets a token. */
  constructor(place, model) {
    this.place = place;
    this.model = model;
    this.sent = null; // the token of the last message that is not answered yet
    model.on("change:heard", this.#hear);
  }

  get(name) {
    return this.model.get(name);
  }

  on(event, heard) {
    this.model.on(event, heard);
  }

  off(event, heard) {
    this.model.off(event, heard);
  }

  send(message) {
    this.sent = `${Math.random()}`;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.place.textContent = LabLine.WORDS;
    }, LabLine.PATIENCE);
    this.model.send({ ...message, token: this.sent });
  }

  #hear = () => {
    if (this.get("heard") !== this.sent) return;
    this.sent = null;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.place.textContent = "";
  };

  end() {
    clearTimeout(this.timer);
    this.off("change:heard", this.#hear);
  }
}
