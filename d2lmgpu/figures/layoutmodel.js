// The model of layouts, number for number as d2lmgpu/costmodel/layouts.py has it, which says why.
// Times are seconds, sizes are bytes. `given` holds the constants of the Python side.
(() => {
  "use strict";
  const VERDICTS = ["fits", "cannot be told", "does not fit", "cannot be made"];
  const [FITS, OPEN, DOES_NOT, CANNOT] = VERDICTS;
  const BYTES = { parameter: 2, gradient: 4, activation: 2 };

  const thousands = (value) => value.toLocaleString("en");

  /** Every layout of so many devices, in the order of Python's `factorings`. */
  function factorings(devices, mostTp, mostCp) {
    const divisors = [...Array(devices).keys()].map((i) => i + 1).filter((n) => devices % n === 0);
    const layouts = [];
    for (const dp of divisors) {
      for (const fsdp of divisors) {
        for (const pp of divisors) {
          if (devices % (dp * fsdp * pp)) continue;
          const rest = devices / (dp * fsdp * pp);
          for (const cp of divisors.filter((n) => n <= mostCp && rest % n === 0)) {
            if (rest / cp <= mostTp) layouts.push({ dp, fsdp, pp, cp, tp: rest / cp });
          }
        }
      }
    }
    return layouts;
  }

  const DISTANCE = {
    dp: ({ fsdp, pp, cp, tp }) => fsdp * pp * cp * tp,
    fsdp: ({ pp, cp, tp }) => pp * cp * tp,
    pp: ({ cp, tp }) => cp * tp,
    cp: ({ tp }) => tp,
    tp: () => 1,
  };
  const shardsOf = ({ fsdp, cp }) => fsdp * cp;
  const sizeOf = (layout, side) => (side === "shards" ? shardsOf(layout) : layout[side]);
  const microBatches = ({ dp, fsdp }, { batch, micro }) => batch / (dp * fsdp * micro);

  function operations({ width, blocks, symbols, tokens }, recompute) {
    const block = 12 * width ** 2 + 2 * tokens * width;
    return (recompute ? 8 : 6) * blocks * block + 6 * symbols * width;
  }

  /** Of a stage: its blocks, numbers of a block, numbers of its ends. */
  function parameters(sizes, { pp, tp }, stage) {
    const d = sizes.width;
    const block = ((12 * d + 7) * d) / tp + 6 * d;
    const matrix = (sizes.symbols * d) / tp;
    const [first, last] = [stage === 0, stage === pp - 1];
    let ends = (first ? matrix + sizes.tokens * d : 0) + (last ? 2 * d : 0);
    if (last && !(sizes.tied && first)) ends += matrix;
    return [Math.floor(sizes.blocks / pp) + (stage < sizes.blocks % pp ? 1 : 0), block, ends];
  }

  function memoryOf(given, sizes, layout, training, stage) {
    const [blocks, block, ends] = parameters(sizes, layout, stage);
    const { pp, cp, tp } = layout;
    const [numbers, shards] = [blocks * block + ends, shardsOf(layout)];
    let states, gathered;
    if (pp > 1 || shards === 1) {
      states = numbers * (BYTES.parameter + BYTES.gradient + given.optimiser / shards);
      gathered = 0;
    } else {
      states = (numbers * (BYTES.gradient + given.optimiser)) / shards;
      gathered = (Math.min(2, blocks) * block + ends) * BYTES.parameter + block * BYTES.gradient;
    }
    const tokens = Math.floor((training.micro * sizes.tokens) / cp);
    const ofToken = BYTES.activation * sizes.width;
    const ofBlock = tokens * ofToken * ((given.kept - 4) / tp + 4 / tp);
    let atOnce = pp - stage;
    if (training.interleave > 1) atOnce += (pp - 1) / training.interleave;
    atOnce = Math.min(microBatches(layout, training), atOnce);
    const activations = training.recompute ?
      (atOnce * blocks * tokens * ofToken) / tp + ofBlock : atOnce * blocks * ofBlock;
    const scores = stage === pp - 1 ? (given.score * tokens * sizes.symbols) / tp : 0;
    const total = states + gathered + activations + scores;
    return { states, gathered, activations, scores, total };
  }

  /** What the device that holds most has to hold. */
  function memory(given, sizes, layout, training) {
    const ofFirst = memoryOf(given, sizes, layout, training, 0);
    if (layout.pp === 1) return ofFirst;
    const other = memoryOf(given, sizes, layout, training, layout.pp - 1);
    return other.total > ofFirst.total ? other : ofFirst;
  }

  /** Between these many bytes of a card, as in d2lmgpu/memory/cards.py. */
  function band(given, total) {
    const [least, most] = given.context;
    return [Math.floor(total) + least, Math.floor(Math.floor(total) * (1 + given.miss)) + most];
  }

  function verdictOf([low, high], card) {
    if (high <= card) return FITS;
    return low > card ? DOES_NOT : OPEN;
  }

  const hops = ({ cp }, { recompute }) => [(cp - 1) * (recompute ? 2 : 1), cp - 1];

  /** What a device of the first stage takes part in: {side and operation: calls and bytes}. */
  function exchanges(given, sizes, layout, training) {
    const [blocks, block, ends] = parameters(sizes, layout, 0);
    const { pp, cp, tp } = layout;
    const [m, shards] = [microBatches(layout, training), shardsOf(layout)];
    const tokens = Math.floor((training.micro * sizes.tokens) / cp);
    const activations = tokens * sizes.width * BYTES.activation;
    const all = [];
    const add = (operation, side, calls, bytes) => {
      if (calls && sizeOf(layout, side) > 1) all.push({ operation, side, calls, bytes });
    };
    const sums = m * (blocks * (training.recompute ? 6 : 4) + 1 + (pp === 1 ? 1 : 0));
    add("all_gather", "tp", sums, sums * activations);
    add("reduce_scatter", "tp", sums, sums * activations);
    const [forward, backward] = hops(layout, training);
    const ring = m * blocks * (forward + backward + cp);
    add("send", "cp", ring, (ring * 2 * activations) / tp / sizes.grouped);
    const numbers = blocks * block + ends;
    const [rounds, again] = pp > 1 ? [1, 0] : [m, 1];
    const gathered = (1 + again) * blocks * block + ends;
    const gathers = rounds * ((1 + again) * blocks + 1);
    add("all_gather", "shards", gathers, rounds * gathered * BYTES.parameter);
    const reduced = rounds * numbers * BYTES.gradient;
    add("reduce_scatter", "shards", rounds * (blocks + 1), reduced);
    if (shards > 1) {
      add("all_reduce", "dp", rounds * (blocks + 1), reduced / shards);
    } else {
      const gradients = numbers * BYTES.gradient;
      add("all_reduce", "dp", Math.ceil(gradients / given.bucket), gradients);
    }
    const sends = m * training.interleave;
    add("send", "pp", sends, (sends * activations) / tp);
    return all;
  }

  /** The machine as a group sees it: its devices inside, and their share of the network. */
  function along(machine, layout, side) {
    let inside = 1;
    for (const of of side === "shards" ? ["fsdp", "cp"] : [side]) {
      const near = Math.floor(machine.devices / DISTANCE[of](layout));
      inside *= Math.max(1, Math.min(layout[of], near));
    }
    const [latency, bandwidth] = machine.network;
    return { devices: inside, network: [latency, (bandwidth * inside) / machine.devices] };
  }

  /** Of all calls of an exchange, one after the other. */
  function secondsOf({ operation, side, calls, bytes }, layout, machine) {
    const { devices, network } = along(machine, layout, side);
    const [size, each] = [sizeOf(layout, side), bytes / calls];
    if (operation === "send") {
      let link = machine.link;
      if (size > devices) link = [network[0], network[1] / devices];
      return calls * (link[0] + each / link[1]);
    }
    const ring = (k, [latency, bandwidth]) => k === 1 ? 0 :
      2 * (k - 1) * latency + (((2 * (k - 1)) / k) * each) / bandwidth;
    const sharded = (k, [latency, bandwidth]) => k === 1 ? 0 :
      2 * latency + (((2 * (k - 1)) / k) * each) / bandwidth;
    const call = size <= devices ? ring(size, machine.link) :
      sharded(devices, machine.link) + ring(Math.ceil(size / devices), network);
    return calls * (operation === "all_reduce" ? 1 : 0.5) * call;
  }

  /** What remains of an exchange when what hides it is over. */
  function exposed(exchange, behind, parts) {
    return Math.max(exchange / parts, exchange - (behind * (parts - 1)) / parts);
  }

  /** Modelled times of one step, all products at the peak. */
  function step(given, sizes, layout, training, machine) {
    const m = microBatches(layout, training);
    const { pp, cp, tp } = layout;
    const all = exchanges(given, sizes, layout, training);
    const timed = all.map((e) => ({ ...e, seconds: secondsOf(e, layout, machine) }));
    const of = (side, ...kinds) => timed
      .filter((exchange) => exchange.side === side && kinds.includes(exchange.operation))
      .reduce((sum, { seconds }) => sum + seconds, 0);
    const each = (side) => timed.filter((exchange) => exchange.side === side)
      .reduce((sum, { seconds, calls }) => sum + seconds / calls, 0);

    const tokens = Math.floor((training.micro * sizes.tokens) / cp);
    const compute = (tokens * operations(sizes, training.recompute)) / (pp * tp) / machine.flops;
    const [blocks] = parameters(sizes, layout, 0);
    const even = sizes.blocks / pp / blocks;
    const tensor = (of("tp", "all_gather", "reduce_scatter") / m) * even;
    const sends = each("pp") * 2 * training.interleave;
    let context = 0;
    if (cp > 1) {
      const hop = each("cp");
      const pairs = Math.floor((tokens * sizes.tokens) / cp);
      const attention = (2 * pairs * sizes.width) / tp / machine.flops;
      const shown = Math.max(0, hop - attention);
      const [forward, backward] = hops(layout, training);
      context = (((forward + 2 * backward) * shown + hop) * sizes.blocks) / pp;
    }
    const slot = compute + tensor + context + sends;
    const ahead = slot / (training.recompute ? 4 : 3);
    const rounds = pp > 1 ? 1 : m;
    const remains = (exchange, behind) =>
      rounds * exposed(exchange / rounds, behind, blocks + 1);
    const gathers = of("shards", "all_gather");
    const first = pp > 1 ? gathers : (gathers * (blocks + 1)) / (2 * blocks + 1);
    const later = gathers - first + of("shards", "reduce_scatter");
    const ofShards = remains(later, slot - ahead);
    const sharding = remains(first, ahead) + ofShards;
    let gradients = of("dp", "all_reduce");
    if (shardsOf(layout) > 1) {
      gradients = remains(later + gradients, slot - ahead) - ofShards;
    } else if (gradients) {
      const [{ calls }] = all.filter(({ side }) => side === "dp");
      gradients = exposed(gradients, slot - ahead, calls);
    }
    const parts = {
      compute: m * compute, tensor: m * tensor, context: m * context, sends: m * sends,
      bubble: emptySlots(m, pp, training.interleave) * slot, sharding, gradients,
    };
    const seconds = Object.values(parts).reduce((sum, part) => sum + part, 0);
    const counted = training.batch * sizes.tokens * operations(sizes, false);
    const devices = layout.dp * shardsOf(layout) * pp * tp;
    return { ...parts, seconds, share: counted / seconds / devices / machine.flops };
  }

  function cannot(sizes, { dp, fsdp, pp, cp, tp }, batch) {
    if (batch % (dp * fsdp)) {
      return `${thousands(batch)} sequences for ${thousands(dp * fsdp)} groups`;
    }
    if (pp > sizes.blocks) return `${thousands(sizes.blocks)} blocks for ${thousands(pp)} stages`;
    if (cp > 1 && sizes.tokens % (2 * cp)) {
      return `${thousands(sizes.tokens)} tokens for ${thousands(2 * cp)} chunks`;
    }
    if (sizes.width % tp) return `a width of ${thousands(sizes.width)} for ${thousands(tp)} parts`;
    return "";
  }

  function trainings(sizes, { dp, fsdp, pp }, batch) {
    const list = [];
    for (const micro of [1, 2, 4, 8]) {
      if (batch % (dp * fsdp * micro)) continue;
      for (const interleave of [1, 2, 4]) {
        if (interleave > 1 && (pp === 1 || sizes.blocks % (pp * interleave))) continue;
        for (const recompute of [false, true]) list.push({ batch, micro, recompute, interleave });
      }
    }
    return list;
  }

  /** Of a pipeline: slots without work, where each of p devices has v stages. */
  const emptySlots = (m, p, v) => Math.max(m, p) - m + (Math.min(m, p) - 1) / v;

  const least = (all, of) => all.reduce((a, b) => (of(b) < of(a) ? b : a));

  /** Seconds that another training of the same layout computes and waits in the pipeline. */
  function atLeast(sizes, best, training) {
    const once = best.step.compute / operations(sizes, best.training.recompute);
    const m = microBatches(best.layout, training);
    const slots = 1 + emptySlots(m, best.layout.pp, training.interleave) / m;
    return once * operations(sizes, training.recompute) * slots * (1 - 1e-9);
  }

  /** Whether a layout can train a network on cards of the machine, and the best way. */
  function considered(given, sizes, layout, batch, machine) {
    const reason = cannot(sizes, layout, batch);
    if (reason) return { layout, verdict: CANNOT, reason };
    const held = trainings(sizes, layout, batch).map((training) => {
      const taken = memory(given, sizes, layout, training);
      const within = band(given, taken.total);
      const verdict = verdictOf(within, machine.card);
      return { layout, training, memory: taken, within, verdict };
    });
    const verdict = VERDICTS.find((verdict) => held.some((of) => of.verdict === verdict));
    const planned = (of) => ({ ...of, step: step(given, sizes, layout, of.training, machine) });
    if (verdict !== FITS) return planned(least(held, (of) => of.memory.total));
    let best;
    for (const candidate of held.filter((of) => of.verdict === FITS)) {
      if (best && atLeast(sizes, best, candidate.training) > best.step.seconds) continue;
      const plan = planned(candidate);
      if (!best || plan.step.seconds < best.step.seconds) best = plan;
    }
    return best;
  }

  /** All layouts: those that fit, the quickest first, and then the others, the smallest first. */
  function ranked(given, sizes, devices, batch, machine) {
    const place = ({ verdict, step: taken, memory: held }) => [
      VERDICTS.indexOf(verdict),
      verdict === FITS ? taken.seconds : (held?.total ?? 0),
    ];
    return factorings(devices, given.mostTp, given.mostCp)
      .map((layout) => considered(given, sizes, layout, batch, machine))
      .map((candidate) => ({ ...candidate, place: place(candidate) }))
      .sort(({ place: [a, b] }, { place: [c, d] }) => a - c || b - d);
  }

  globalThis.layoutModel = { VERDICTS, factorings, memory, band, step, considered, ranked };
})();
