// A Firefox that is told what to do on standard input, a line of JSON a call, and answers likewise:
// ["goto", address] -> {"value": …} or {"error": message}. firefox.py is its other half.
"use strict";
const puppeteer = require("puppeteer-core");
const readline = require("node:readline");

(async () => {
  const [program, profile] = process.argv.slice(2);
  const browser = await puppeteer.launch({
    browser: "firefox", executablePath: program, headless: true, userDataDir: profile,
  });
  let page = null;
  let troubles = [];

  const calls = {
    /** A page of its own, of which nothing is known yet. */
    async open(address, width) {
      await page?.close();
      page = await browser.newPage();
      troubles = [];
      await page.setViewport({ width, height: 800 });
      page.on("console", (output) => output.type() === "error" && troubles.push(output.text()));
      page.on("pageerror", (error) => troubles.push(error.message));
      page.on("request", (request) => {
        const { protocol, hostname } = new URL(request.url());
        const outside = protocol.startsWith("http") && hostname !== "127.0.0.1";
        if (outside) troubles.push(`asks ${request.url()}`);
      });
      await page.goto(address, { waitUntil: "load" });
    },
    evaluate: (code) => page.evaluate(code),
    /** Among buttons: what asks every element of a page for its role and name takes half a minute. */
    async press(words) {
      const button = await page.waitForFunction(
        (name) => [...document.querySelectorAll("button")].find((b) => b.innerText.trim() === name),
        {}, words,
      );
      await button.click();
    },
    wait: (condition) => page.waitForFunction(condition).then(() => null),
    troubles: async () => troubles,
  };

  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [name, ...given] = JSON.parse(line);
    const answer = await calls[name](...given).then(
      (value) => ({ value: value ?? null }),
      (error) => ({ error: error.message }),
    );
    console.log(JSON.stringify(answer));
  }
  await browser.close();
})();
