"""What a page quotes from a record in its text is what the record says."""

import re

import pytest

from d2lmgpu.machine.files import CHAPTERS
from d2lmgpu.records import store

QUOTED = re.compile(
    r"two cores of an? ([\w ]+), two trained this network ([\d.]+) to ([\d.]+) times"
)


@pytest.mark.parametrize("page", ["pytorch", "mxnet"])
def test_the_speedup_of_two_cores_is_that_of_the_page_s_own_record(page):
    text = (CHAPTERS / "scratch" / f"{page}.ipynb").read_text(encoding="utf-8")
    ((cpu, least, most),) = QUOTED.findall(text)
    record = store.read(store.FOLDER / f"cpu-2-cores-scratch-{page}-quick.json")
    first, second = (store.speeds(record, k, batch_size=256) for k in (1, 2))
    ratios = [b / a for a, b in zip(first, second, strict=True)]
    assert cpu == record["machine"]["cpu"] and record["machine"]["cores"] == 2
    assert (least, most) == (f"{min(ratios):.2f}", f"{max(ratios):.2f}")
