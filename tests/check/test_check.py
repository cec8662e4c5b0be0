"""What is said of a script with a defect, and of a right one, beside the verdict."""

import json
import math
import re
import subprocess
import sys

import pytest
from schemas import stated
from scripts_of import FOLDER

from d2lmgpu.watch.check import words
from d2lmgpu.watch.check.run import check


def line_of(where):
    file, _, line = where.rpartition(":")
    return (FOLDER / file).read_text().splitlines()[int(line) - 1]


def test_a_right_script_is_equal_to_rounding():
    verdict = check(FOLDER / "right_ddp.py")
    assert (verdict.equal, verdict.defect, verdict.where) == (True, "none", None)
    assert verdict.double and verdict.difference < 1e-12  # float64, on the same rows
    assert verdict.updates == 16 and verdict.devices == 2
    (note,) = verdict.notes  # why a curve may change: the rate follows the batch
    numbers = [int(number) for number in re.findall(r"\d+", note)]
    assert numbers == [2, 2, 16, 8, 8, 16, 2]  # devices, rows, updates an epoch, the rate


def test_a_sum_that_nobody_divides_as_json():
    script = FOLDER / "wrong-scale_1.py"
    command = [sys.executable, "-m", "d2lmgpu", "check", "--json", "--", str(script)]
    done = subprocess.run(command, capture_output=True, text=True)
    report = json.loads(done.stdout)
    assert done.returncode == 1 and report["outcome"] == "different" and stated(report)
    assert (report["equal"], report["defect"]) == (False, "wrong-scale") and report[
        "difference"
    ] > 0.1
    assert "dist.all_reduce" in line_of(report["where"])


def test_no_set_epoch_leaves_the_weights_equal_and_is_found():
    verdict = check(FOLDER / "sampler_1.py")
    assert verdict.equal and verdict.difference < 1e-12 and verdict.defect == "sampler"
    assert "DistributedSampler" in line_of(verdict.where)
    screen = words.screen(verdict, FOLDER / "sampler_1.py")
    assert "shuffle=True" in screen and "set_epoch" in screen and len(screen.splitlines()) <= 24


def test_data_that_each_rank_cuts_elsewhere():
    verdict = check(FOLDER / "sampler_4.py")
    assert verdict.equal and verdict.defect == "sampler"
    assert "random_split" in line_of(verdict.where)


@pytest.mark.parametrize("defect", words.MENDS)
def test_every_defect_has_a_mend_in_a_line_or_two(defect):
    assert math.ceil(len(words.MENDS[defect]) / 100) <= 2
