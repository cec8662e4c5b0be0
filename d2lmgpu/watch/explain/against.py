"""What a mend gave: the answer of ``explain`` beside that from before, which was kept as JSON."""

import json
from dataclasses import dataclass

from d2lmgpu.watch import MisuseError
from d2lmgpu.watch.explain.answer import PARTS, SCHEMA_VERSION

ALIKE = 0.1  # two runs of one script may differ by as much
AGAIN = "Run explain --json again, without other programs, and compare with that."


def read(path) -> dict:
    """What ``explain --json`` has written to ``path``. MisuseError, in words, for anything else."""
    try:
        with open(path, encoding="utf-8") as file:
            told = json.load(file)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise MisuseError(f"{path} is no JSON: {error}. Give what explain --json wrote.") from None
    if not isinstance(told, dict) or told.get("command") != "explain":
        raise MisuseError(f"{path} is not of explain. Give what explain --json wrote.")
    if (version := told.get("schema_version")) != SCHEMA_VERSION:
        raise MisuseError(
            f"{path} has schema_version {version}, and this d2lmgpu has {SCHEMA_VERSION}. Write it "
            "anew with the script from before, or compare with the d2lmgpu that wrote it."
        )
    if told["step"] is None:
        raise MisuseError(f"{path} tells of no step: {told['reason']}")
    return told


@dataclass(frozen=True)
class Against:
    """Two answers as ``Answer.as_dict`` gives them: that from ``before``, and that of ``now``."""

    before: dict
    now: dict

    @property
    def reason(self) -> str | None:
        """Why the two are not compared; None if they are."""
        for name, said in (("machine", "on another machine"), ("devices", "with other devices")):
            if self.before[name] != self.now[name]:
                was, is_ = (_in_words(one[name]) for one in (self.before, self.now))
                return f"it was measured {said}: {was} before, {is_} now. Measure both on one."
        for told, when in ((self.before, "before"), (self.now, "now")):
            if told["unsteady"]:
                return f"the times from {when} are unsteady: {told['unsteady']}. {AGAIN}"
        return None

    @property
    def times(self) -> float:
        """How many times as fast it is: by rows a second, by steps where rows are not seen."""
        before, now = self.before["step"], self.now["step"]
        rows = now["rows"] / before["rows"] if now["rows"] and before["rows"] else 1.0
        return rows * before["seconds"] / now["seconds"]

    def as_dict(self) -> dict:
        """The answer of now with what it is against that from before."""
        both = self.before, self.now
        steps = [told["step"] for told in both]
        names = [name for name in PARTS if any(name in step["parts"] for step in steps)]
        found = {
            "reason": self.reason,
            "times": None if self.reason else round(self.times, 3),
            "seconds": [step["seconds"] for step in steps],
            "parts": {name: [step["parts"].get(name, 0.0) for step in steps] for name in names},
            "speedup": [told["speedup"]["measured"] for told in both],
            "cause": [told["cause"] for told in both],
        }
        told = {"outcome": "not explained", "reason": self.reason} if self.reason else {}
        return self.now | told | {"against": found}

    def __str__(self):
        """The change in words, and the parts of a step before and now."""
        if self.reason:
            return f"Not compared with before: {self.reason}"
        told = self.as_dict()["against"]
        before, now = (1000 * seconds for seconds in told["seconds"])
        lines = [f"Against before: {self._change()} A step: {before:.1f} ms before, {now:.1f} now."]
        for name, (was, is_) in told["parts"].items():
            if max(was, is_) >= 0.01 * min(told["seconds"]):
                lines.append(f"  {PARTS[name]:25s} {1000 * was:8.1f} ms -> {1000 * is_:8.1f} ms")
        if None not in told["speedup"]:
            lines.append("  speedup {:.2f} before, {:.2f} now".format(*told["speedup"]))
        lines.append("  cause that costs most: {} before, {} now".format(*told["cause"]))
        return "\n".join(lines)

    def _change(self):
        what = "rows" if self.now["step"]["rows"] and self.before["step"]["rows"] else "steps"
        if abs(self.times - 1) < ALIKE:
            return f"no change that can be told ({self.times:.2f} times the {what} a second)."
        way = "faster" if self.times > 1 else "slower"
        return f"{way}, {self.times:.2f} times the {what} a second."


def _in_words(value):
    if isinstance(value, dict):
        return f"{value['cpu']}, {value['cores']} cores"
    return " and ".join("none" if one is None else str(one) for one in value)
