// Runs in words and numbers: what the panel says of them.
const TrainingWords = (() => {
  "use strict";

  const ALGORITHMS = { tree: "tree", one: "through one device", ring: "ring" };
  const TOO_GOOD = "One device was slower than its share, as when other programs run";
  const UNSTEADY = "The speed was unsteady, as when other programs run";
  const NUMBERS = { 1: "one", 2: "two", 4: "four", 8: "eight" };

  const devices = (k) => `${NUMBERS[k]} device${k > 1 ? "s" : ""}`;
  const capital = (text) => text[0].toUpperCase() + text.slice(1);
  const network = (run) => Training.networks[run.network].name;

  function difference(value) {
    if (value === null) return "–";
    if (value === 0) return "identical";
    if (!Number.isFinite(value)) return "one diverged";
    return value < 0.001 ? value.toExponential(1) : value.toPrecision(2);
  }

  function settings(chosen) {
    const { devices: k, batchSize, lr, epochs, algorithm } = chosen;
    const times = `${epochs} epoch${epochs === 1 ? "" : "s"}`;
    const exchange = k > 1 ? ` (${ALGORITHMS[algorithm]})` : "";
    return `${network(chosen)}, ${devices(k)}${exchange}, batch ${batchSize}, learning rate ${lr}, ${times}`;
  }

  function accuracy(run) {
    if (!run.accuracies.length) return "–";
    const value = run.accuracies.at(-1).toFixed(3);
    return TrainingRuns.diverged(run) ? `${value}, diverged` : value;
  }

  /** The numbers of a run, live and in the table: {name: text}. */
  function numbers(run, runs) {
    const begun = run.losses.length > 0;
    const { times, why } = runs.speedup(run);
    return {
      loss: begun ? run.losses.at(-1).toFixed(3) : "–",
      accuracy: accuracy(run),
      rate: begun ? LabWords.number(TrainingRuns.rate(run)) : "–",
      share: begun ? `${(100 * TrainingRuns.exchangeShare(run)).toFixed(1)} %` : "–",
      bytes: begun ? LabWords.bytes(run.bytes) : "–",
      speedup: times ? `${times.toFixed(2)} times` : why,
      difference: difference(runs.difference(run)),
    };
  }

  function ended(run, runs) {
    if (run.how === "stopped") return `Stopped after ${run.losses.length} updates.`;
    const { accuracy, rate } = numbers(run, runs);
    const marks = TrainingRuns.unsteady(run) ? ` ${UNSTEADY}: try again.` : "";
    const what = TrainingRuns.diverged(run) ? `The training diverged (${settings(run)}): a smaller
      learning rate may help.` : `Finished: ${settings(run)}.`;
    return `${what} Test accuracy ${accuracy}, ${rate} samples/s.${marks}`;
  }

  function losses(run, runs) {
    const apart = runs.difference(run);
    if (apart === 0) return `all ${run.losses.length} losses are identical`;
    return Number.isFinite(apart)
      ? `the losses differ by up to ${difference(apart)}, because the same numbers were added in another order`
      : "one of the two diverged";
  }

  /** One sentence on a run on several devices, after the same training on one. */
  function compared(run, runs) {
    const { times, why } = runs.speedup(run);
    if (!times) {
      const reason = TrainingRuns.shared(run) ? shared(run) : "This tab was hidden";
      const noise = { unsteady: UNSTEADY, "not explained": TOO_GOOD }[why];
      const then = noise ? " Try again." : "";
      return `${noise ?? reason}, so no speedup is told; ${losses(run, runs)}.${then}`;
    }
    const how =
      times >= 1
        ? `trained ${times.toFixed(2)} times as fast as one`
        : `took ${(1 / times).toFixed(2)} times as long as one`;
    return `${capital(devices(run.devices))} ${how}, and ${losses(run, runs)}.`;
  }

  function cores({ cores: count }) {
    return count ? `${count} core${count > 1 ? "s" : ""}` : "an unknown number of cores";
  }

  function shared(run) {
    const who = devices(run.devices);
    return `Your browser reports ${cores(run)}, which the ${who} share`;
  }

  /** On what the numbers of a run were measured. */
  function measured(run) {
    const slow = run.simd ? "" : " This browser lacks WebAssembly SIMD, so plain JavaScript trained.";
    return `Measured in your browser, on ${cores(run)}; other programs and tabs take their part.${slow}`;
  }

  return { ALGORITHMS, capital, compared, devices, ended, measured, network, numbers, settings, shared };
})();
