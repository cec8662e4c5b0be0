"""Two causes and the shape of the answer; all scripts and their twins are in `every_cause`."""

import pytest
from explain_scripts import SCRIPTS, explained

BY_NAME = {script.stem: script for script in SCRIPTS}


@pytest.mark.needs("cores")
def test_a_fact_is_named_with_its_line():
    answer = explained(BY_NAME["data-parallel_1"])
    line = (
        BY_NAME["data-parallel_1"].read_text().splitlines()[int(answer["where"].split(":")[1]) - 1]
    )
    assert answer["cause"] == "data-parallel" and "nn.DataParallel(" in line


@pytest.mark.needs("cores")
def test_a_share_is_named_with_its_line():
    answer = explained(BY_NAME["loader_1"])
    line = BY_NAME["loader_1"].read_text().splitlines()[int(answer["where"].split(":")[1]) - 1]
    assert answer["cause"] == "loader" and 0.3 < answer["share"] < 1 and "np." in line
    measured = answer["speedup"]["measured"]
    assert answer["speedup"]["predicted"] > 0
    # beside other work more may be measured than two devices can give, which it refuses to call one
    assert measured > 0 if measured is not None else "more was measured" in answer["unsteady"]
