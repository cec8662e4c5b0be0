// Whether the times of a run say how fast it is: the rule of d2lmgpu/records/steady.py, as far as a
// browser can see. Other programs are not in its view; that pieces of a run differ is.
class TrainingSteady {
  static MOST = 1.25; // times as slow
  static PIECE = 0.05; // seconds: of a shorter one the clock tells little

  /** Seconds per sample of pieces of at least PIECE seconds, of [seconds, samples] each. */
  static pieces(points) {
    const paces = [];
    let [seconds, samples] = [0, 0];
    for (const [moreSeconds, moreSamples] of points) {
      seconds += moreSeconds;
      samples += moreSamples;
      if (seconds >= TrainingSteady.PIECE && samples > 0) {
        paces.push(seconds / samples);
        [seconds, samples] = [0, 0];
      }
    }
    return paces;
  }

  /** How many times as slow the slowest piece is as the fastest, without tenths and the first. */
  static spread(pieces) {
    const rest = pieces.slice(1).sort((a, b) => a - b);
    const tenth = Math.floor(rest.length / 10);
    const [low, high] = [rest[tenth], rest[rest.length - 1 - tenth]];
    return low > 0 ? high / low : 1;
  }

  static unsteady(points) {
    return TrainingSteady.spread(TrainingSteady.pieces(points)) > TrainingSteady.MOST;
  }
}
