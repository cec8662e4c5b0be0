"""All scripts, once each: the defect that is in it, or none. ``table`` runs each five times."""

import pytest
from scripts_of import DIFFERENT, expected

from d2lmgpu.watch.check.run import check


@pytest.mark.parametrize(
    ("path", "defect"), expected().items(), ids=[path.stem for path in expected()]
)
def test_a_script_gets_its_verdict(path, defect):
    verdict = check(path)
    assert verdict.defect == defect
    if defect == "none":
        assert verdict.equal == (path.stem not in DIFFERENT)
