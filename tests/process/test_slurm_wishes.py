"""What a Slurm for ``launch`` may be asked for."""

import pytest

from d2lmgpu.launch import Slurm


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"nodes": 0},
        {"nodes": True},
        {"nodes": 1.5},
        {"nodes": "2"},
        {"gpus": -1},
        {"gpus": "2"},
        {"time": 0},
        {"time": 1.5},
        {"time": "soon"},
        {"time": "1:"},
        {"time": True},
        {"partition": ""},
        {"partition": "a b"},
        {"partition": "-x"},
        {"partition": 3},
        {"job": 0},
        {"job": "7"},
        {"job": 7, "nodes": 2},
        {"job": 7, "gpus": 1},
    ],
)
def test_what_cannot_be_is_refused_by_its_name(wrong):
    name = "job" if "job" in wrong else next(iter(wrong), "nodes")
    with pytest.raises(ValueError, match=f"^{name} is .*give "):
        Slurm(**({"nodes": 1} if wrong and not {"nodes", "job"} & set(wrong) else {}) | wrong)


@pytest.mark.parametrize("time", [1, "30", "1:30:00", "2-0", "2-12:30"])
def test_times_as_slurm_writes_them(time):
    assert Slurm(nodes=2, gpus=1, time=time).time == time
