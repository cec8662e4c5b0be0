"""The probe in processes: what the ranks time, and that one works alone where it should."""

from d2lmgpu.costmodel import probe
from d2lmgpu.launch import launch


def few_repeats():
    probe.REPEATS = 2
    return probe.in_processes()


def test_all_ranks_time_the_same_things(monkeypatch):
    monkeypatch.setenv("D2LMGPU_PROFILE", "test")
    first, second = launch(few_repeats, num_processes=2)
    assert list(first) == list(second)
    assert {(what, k) for what, k, _ in first} == {("compute", 1), ("compute", 2), ("exchange", 2)}
    assert len(first) == 2 + 2 + 4
    assert all(len(times) == 2 and min(times) > 0 for times in first.values())
    alone = max(key for key in first if key[:2] == ("compute", 1))
    assert sum(second[alone]) < sum(first[alone])  # the other rank has nothing to do
