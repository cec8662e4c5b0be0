"""What a mend gave: the answer of ``explain`` beside that from before, which was kept as JSON."""

import json
from dataclasses import dataclass

from d2lmgpu.process.step_parts import IN_WORDS, part_change
from d2lmgpu.watch import MisuseError
from d2lmgpu.watch.explain.answer import SCHEMA_VERSION

ALIKE = 0.1  # two runs of one script may differ by as much
AGAIN = "Run explain --json again, without other programs, and compare with that."


def read(path) -> dict:
    """What ``explain --json`` has written to ``path``. MisuseError, in words, for anything else."""
    try:
        with open(path, encoding="utf-8") as file:
            answer = json.load(file)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise MisuseError(f"{path} is no JSON: {error}. Give what explain --json wrote.") from None
    if not isinstance(answer, dict) or answer.get("command") != "explain":
        raise MisuseError(f"{path} is not of explain. Give what explain --json wrote.")
    if (version := answer.get("schema_version")) != SCHEMA_VERSION:
        raise MisuseError(
            f"{path} has schema_version {version}, and this d2lmgpu has {SCHEMA_VERSION}. Write it "
            "anew with the script from before, or compare with the d2lmgpu that wrote it."
        )
    if answer["step"] is None:
        raise MisuseError(f"{path} tells of no step: {answer['reason']}")
    return answer


@dataclass(frozen=True)
class Against:
    """Two answers as ``Answer.as_dict`` gives them: that from ``before``, and that of ``now``."""

    before: dict
    now: dict

    @property
    def reason(self) -> str | None:
        """Why the two are not compared; None if they are."""
        others = {"machine": "on another machine", "devices": "with other devices"}
        for name, elsewhere in others.items():
            if self.before[name] != self.now[name]:
                was, is_ = (_in_words(answer[name]) for answer in (self.before, self.now))
                return f"it was measured {elsewhere}: {was} before, {is_} now. Measure both on one."
        for answer, when in ((self.before, "before"), (self.now, "now")):
            if answer["unsteady"]:
                return f"the times from {when} are unsteady: {answer['unsteady']}. {AGAIN}"
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
        steps = [answer["step"] for answer in both]
        names = [name for name in IN_WORDS if any(name in step["parts"] for step in steps)]
        change = {
            "reason": self.reason,
            "times": None if self.reason else round(self.times, 3),
            "seconds": [step["seconds"] for step in steps],
            "parts": {name: [step["parts"].get(name, 0.0) for step in steps] for name in names},
            "speedup": [answer["speedup"]["measured"] for answer in both],
            "cause": [answer["cause"] for answer in both],
        }
        refusal = {"outcome": "not explained", "reason": self.reason} if self.reason else {}
        return self.now | refusal | {"against": change}

    def __str__(self):
        """The change in words, and the parts of a step before and now."""
        if self.reason:
            return f"Not compared with before: {self.reason}"
        change = self.as_dict()["against"]
        before, now = (1000 * seconds for seconds in change["seconds"])
        lines = [f"Against before: {self._change()} A step: {before:.1f} ms before, {now:.1f} now."]
        for name, (was, is_) in change["parts"].items():
            if max(was, is_) >= 0.01 * min(change["seconds"]):
                lines.append(f"  {part_change(IN_WORDS[name], was, is_)}")
        if None not in change["speedup"]:
            lines.append("  speedup {:.2f} before, {:.2f} now".format(*change["speedup"]))
        lines.append("  cause that costs most: {} before, {} now".format(*change["cause"]))
        return "\n".join(lines)

    def _change(self):
        what = "rows" if self.now["step"]["rows"] and self.before["step"]["rows"] else "steps"
        if abs(self.times - 1) < ALIKE:
            return f"no change that can be told ({self.times:.2f} times the {what} a second)."
        direction = "faster" if self.times > 1 else "slower"
        return f"{direction}, {self.times:.2f} times the {what} a second."


def _in_words(value):
    if isinstance(value, dict):
        return f"{value['cpu']}, {value['cores']} cores"
    return " and ".join("none" if entry is None else str(entry) for entry in value)
