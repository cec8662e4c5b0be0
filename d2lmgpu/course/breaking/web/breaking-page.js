// In a built page the lab shows the record, which lies in the page.
"use strict";

for (const root of document.querySelectorAll(".breaking-recorded")) {
  const shown = JSON.parse(root.querySelector("script").textContent);
  root.replaceChildren();
  const source = { get: (name) => shown[name], on() {}, off() {}, send() {} };
  new BreakingLab(root, source);
}
