// The explorer of memory: add up what is in use, and compare it with a card. See memory.py.
(() => {
  "use strict";

  const GIB = 2 ** 30;
  const MOST = 2 ** 20; // examples, where the batch does not matter any more
  const BLUE = "#0072B2";
  const PINK = "#CC79A7";
  const GRAY = "#7F7F7F";

  // What the letters of a network stand for, and what follows from them.
  function valuesOf(letters) {
    const { d, h, k } = letters;
    return { ...letters, a: d / h, "/k": 1 / k, b: k > 1 ? 1 : 0 };
  }

  // A product of letters; a whole number stands for itself.
  const product = (factors, values) =>
    factors.reduce((value, letter) => value * (values[letter] ?? Number(letter)), 1);

  // The share of all parameters whose state the first device has with ZeRO-1, as in peaks.py.
  function share(parameters, values, many) {
    const sizes = [];
    for (const [name, number] of Object.entries(parameters)) {
      const factors = name.split(" ");
      const copies = factors.includes("L") ? Math.min(values.L, many) : 1;
      const size = product(factors, { ...values, L: 1 });
      for (let i = 0; i < number * copies; i += 1) sizes.push(size);
    }
    sizes.sort((a, b) => b - a);
    const loads = Array(values.k).fill(0);
    for (const size of sizes) loads[loads.indexOf(Math.min(...loads))] += size;
    return loads[0] / loads.reduce((a, b) => a + b);
  }

  // The largest of the sums, in bytes, and of it what grows with the batch.
  function peak(sums, values) {
    const added = sums.map((sum) => {
      let [total, growing] = [0, 0];
      for (const [name, size] of Object.entries(sum)) {
        const factors = name.split(" ");
        const bytes = size * product(factors, values);
        total += bytes;
        if (factors.includes("n")) growing += bytes;
      }
      return { total, growing };
    });
    return added.reduce((a, b) => (b.total > a.total ? b : a));
  }

  function start(root) {
    const data = JSON.parse(root.querySelector("script").textContent);
    const answer = root.querySelector(".memory-answer");
    const choice = (name) => root.querySelector(`[data-name="${name}"]`);
    const fields = [...root.querySelectorAll("[data-letter]")];
    const field = (letter) => fields.find((field) => field.dataset.letter === letter);
    const [network, card] = [choice("network"), choice("card")];

    // A network that is known brings its numbers; those of one's own start from what was there.
    function chosen() {
      const { kind, numbers, own } = data.networks[network.selectedIndex];
      const model = Boolean(numbers || own);
      for (const [letter, value] of Object.entries(numbers ?? {})) field(letter).value = value;
      for (const input of fields) {
        const { letter } = input.dataset;
        const asked = letter === "n" || (model && (own || letter === "T"));
        input.parentElement.hidden = !asked || (letter === "g" && kind !== "Llama");
      }
      show();
    }

    // What is wrong with the numbers, in words, or nothing.
    function wrong(letters, kind) {
      for (const input of fields) {
        const name = input.parentElement.firstChild.textContent;
        const { letter } = input.dataset;
        if (input.parentElement.hidden) continue;
        if (!(Number.isInteger(letters[letter]) && letters[letter] > 0)) {
          return `${name} is "${input.value}": give a whole number from 1 on.`;
        }
      }
      const { d, h, g } = letters;
      if (d % h) return `Hidden size ${d} is not a multiple of ${h} heads.`;
      if (kind === "Llama" && h % g) {
        return `${h} heads are not a multiple of ${g} key-value heads.`;
      }
      return "";
    }

    // Between these many bytes of a card, as in cards.py.
    const band = ({ total }) => [
      total * data.least + data.context[0],
      total * data.held * (1 + data.miss) + data.context[1],
    ];

    function verdict([low, high], total) {
      if (high <= total) return "fits";
      return low > total ? "does not fit" : "cannot be told";
    }

    // The largest batch for which `good` is true, 0 if there is none.
    function largest(good) {
      let [fitting, step] = [0, 1];
      while (step <= MOST && good(step)) [fitting, step] = [step, 2 * step];
      for (let add = step / 2; add >= 1; add /= 2) {
        if (fitting + add < MOST && good(fitting + add)) fitting += add;
      }
      return fitting;
    }

    const gib = (bytes) => (bytes / GIB).toFixed(1);

    function picture({ total, growing }, [low, high], line) {
      const right = 1.04 * Math.max(high, line.total);
      const x = (bytes) => ((400 * bytes) / right).toFixed(1);
      const box = (from, to, color, more = "") =>
        `<rect x="${x(from)}" y="26" width="${x(to - from)}" height="22" fill="${color}" ${more}/>`;
      const at = x(line.total);
      const anchor = at > 200 ? "end" : "start";
      const words = `A bar of ${gib(total)} GiB, with what cannot be told up to ${gib(high)}, ` +
        `beside the ${gib(line.total)} GiB of ${line.name}.`;
      return `<svg viewBox="0 0 400 66" role="img" aria-label="${words}">` +
        box(0, total - growing, BLUE) + box(total - growing, total, PINK) +
        box(total, high, GRAY, 'fill-opacity="0.45"') +
        `<path d="M${at} 18V56" stroke="currentColor" stroke-width="2" stroke-dasharray="5 3"/>` +
        `<text x="${at}" y="13" font-size="13" text-anchor="${anchor}" fill="currentColor">` +
        `${line.name}: ${gib(line.total)} GiB</text>` +
        `<text x="0" y="63" font-size="12" fill="currentColor">0</text></svg>`;
    }

    function say(text) {
      answer.innerHTML = "<p></p>";
      answer.firstChild.textContent = text;
    }

    const square = (color) => `<span style="color:${color}" aria-hidden="true">■</span>`;

    function show() {
      const { kind } = data.networks[network.selectedIndex];
      const letters = Object.fromEntries(
        fields.map((field) => [field.dataset.letter, Number(field.value)]),
      );
      letters.k = Number(choice("devices").value);
      if (kind !== "Llama") letters.g = letters.h;
      const error = wrong(letters, kind);
      if (error) {
        say(error);
        return;
      }
      const values = valuesOf(letters);
      const [precision, optimizer, strategy] = ["precision", "optimizer", "strategy"].map(
        (name) => choice(name).value,
      );
      values.z = data.remembers[optimizer];
      if (strategy === "ZeRO-1") values.z *= share(data.parameters[kind], values, data.many);
      const sums = data.sums[kind][`${precision}, ${data.sumsOf[strategy] ?? strategy}`];
      const bandOf = (n) => band(peak(sums, { ...values, n }));
      const atPeak = peak(sums, values);
      const within = band(atPeak);
      const line = data.cards[card.selectedIndex];
      const fits = verdict(within, line.total);
      const surely = largest((n) => bandOf(n)[1] <= line.total);
      const perhaps = largest((n) => bandOf(n)[0] <= line.total);
      const lists = ["fits", "cannot be told", "does not fit"].map((word) => {
        const names = data.cards.filter(({ total }) => verdict(within, total) === word);
        return `<li>${word}: ${names.map(({ name }) => name).join(", ") || "none"}</li>`;
      });
      answer.innerHTML = `<p>On ${line.name}: <b>${fits}</b>. It takes ${gib(within[0])} to ` +
        `${gib(within[1])} GiB of ${gib(line.total)}, modelled.</p>` +
        picture(atPeak, within, line) +
        `<p>Peak: <b>${(atPeak.total / 1e9).toFixed(2)} GB</b>: ${square(BLUE)} ` +
        `${((atPeak.total - atPeak.growing) / 1e9).toFixed(2)} whatever the batch, ` +
        `${square(PINK)} ${(atPeak.growing / 1e9).toFixed(2)} with it; ` +
        `${square(GRAY)} what cannot be told.</p>` +
        `<p>The largest batch on each device that fits: ${surely}; that may fit: ${perhaps}.</p>` +
        `<ul>${lists.join("")}</ul>`;
      answer.dataset.bytes = atPeak.total;
    }

    network.addEventListener("input", chosen);
    root.addEventListener("input", (event) => {
      if (event.target !== network) show();
    });
    chosen();
  }

  function startAll() {
    for (const root of document.querySelectorAll(".memory-explorer:not([data-started])")) {
      root.dataset.started = "";
      start(root);
    }
  }

  // In a notebook this script comes after each explorer, in the book once before all of them.
  startAll();
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll);
})();
