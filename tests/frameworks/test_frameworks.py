"""check and explain on scripts of the common libraries, which only `make test-frameworks` has."""

from pathlib import Path

import pytest

from d2lmgpu.watch.check import run, words
from d2lmgpu.watch.explain.script import explain_script

FOLDER = Path(__file__).parent / "scripts"
RIGHT = sorted(path.name for path in FOLDER.glob("*_right.py"))
WRONG = {  # a script -> (defect, what its line holds)
    "accelerate_not-exchanged.py": ("not-exchanged", "optimizer.step()"),
    "fabric_wrong-scale.py": ("wrong-scale", "fabric.backward("),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_script_trains_as_one_device_does(name):
    verdict = run.check(FOLDER / name)
    assert (verdict.outcome, verdict.defect) == ("same", "none"), verdict
    assert verdict.difference < 1e-12 and verdict.updates > 10
    # Accelerate, Ignite and Lightning look for GPUs by themselves; none of these asks for one
    assert not any("GPU" in note for note in verdict.notes)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_script_is_named_with_its_line(name):
    defect, line = WRONG[name]
    verdict = run.check(FOLDER / name)
    assert (verdict.outcome, verdict.defect) == ("different", defect), verdict
    assert line in words.code(verdict.where, FOLDER / name)


@pytest.mark.parametrize("name", RIGHT)
def test_the_facts_of_a_right_script_are_right(name):
    """Each shares its rows out and exchanges gradients; what that costs is the machine's."""
    explanation = explain_script(FOLDER / name)
    causes = {cause.name for cause in (explanation.cause, *explanation.others) if cause}
    assert explanation.run.k == 2 and explanation.single is not None and explanation.single.k == 1
    assert not causes & {"data-parallel", "whole-data", "no-overlap"}, str(explanation)
