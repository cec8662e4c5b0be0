"""No GPU is promised twice, none is lost, and a request is refused in words."""

import stat
import time

import gpu_slots
import pytest
from gpu_slots import GpuSlots, Refused, choices, environment, requested
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FOUR = ("GPU-a", "GPU-b", "GPU-c", "GPU-d")


class Machine:
    """An independent bookkeeper: what truly runs, and what the hub's database says of it.

    It keeps one holder per GPU, the other way round from the table under test.
    """

    def __init__(self, gpus):
        self.gpus = gpus
        self.holder = {}  # gpu -> server that truly runs on it
        self.saved = {}  # the hub's database
        self.slots = GpuSlots()

    def start(self, owner, count):
        idle = [gpu for gpu in self.gpus if gpu not in self.holder]
        try:
            got = self.slots.lease(owner, count, self.gpus)
        except Refused as refusal:
            assert refusal.status_code == 409
            # Refused for a reason: too few, or a lease not yet ended (killed, not yet noticed).
            claimed = sum(len(gpus) for gpus in self.saved.values())
            assert count > len(self.gpus) - claimed or self.saved.get(owner)
            return
        assert len(got) == len(set(got)) == count
        assert set(got) <= set(idle), "a GPU was promised twice"
        self.holder.update(dict.fromkeys(got, owner))
        self.saved[owner] = got

    def process_ends(self, owner):
        """Killed: the hub does not know yet."""
        self.holder = {gpu: who for gpu, who in self.holder.items() if who != owner}

    def stop(self, owner):
        """Stopped, or a killed one noticed: the lease ends and the database says so."""
        self.process_ends(owner)
        self.slots.free(owner)
        self.saved.pop(owner, None)

    def hub_restarts(self):
        self.slots = GpuSlots()
        for owner, gpus in self.saved.items():
            self.slots.restore(owner, gpus, since=0)
        self.notice()

    def notice(self):
        """The hub's poll: every saved server that runs no more is stopped."""
        for owner in list(self.saved):
            if owner not in self.holder.values():
                self.stop(owner)


OWNERS = st.sampled_from(["ada", "grace", "lin", "mei", "ada/second"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("start"), OWNERS, st.integers(0, 5)),
        st.tuples(st.just("stop"), OWNERS),
        st.tuples(st.just("process_ends"), OWNERS),
        st.tuples(st.just("hub_restarts")),
        st.tuples(st.just("notice")),
    ),
    max_size=40,
)


@settings(max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 4), STEPS)
def test_no_gpu_is_promised_twice_and_none_is_lost(total, steps):
    machine = Machine(FOUR[:total])
    for name, *arguments in steps:
        getattr(machine, name)(*arguments)
        running = {}
        for gpu, owner in machine.holder.items():
            running.setdefault(owner, set()).add(gpu)
        leased = {owner: set(held.gpus) for owner, held in machine.slots.leases.items()}
        assert all(leased[owner] == gpus for owner, gpus in running.items())
    machine.notice()
    for owner in list(machine.saved):
        machine.stop(owner)
    assert machine.slots.leases == {}, "a lease leaked"
    assert machine.slots.free_gpus(machine.gpus) == machine.gpus


def test_two_saved_claims_on_one_gpu_block_it_until_both_are_gone():
    slots = GpuSlots()
    slots.restore("ada", ["GPU-a"], since=0)
    slots.restore("grace", ["GPU-a"], since=0)
    slots.free("ada")
    with pytest.raises(Refused):
        slots.lease("lin", 1, ("GPU-a",))
    slots.free("grace")
    assert slots.lease("lin", 1, ("GPU-a",)) == ("GPU-a",)


@pytest.mark.parametrize(
    "total, most, count, words",
    [
        (2, 8, 4, "You asked for 4 GPUs; this machine has 2."),
        (0, 8, 1, "You asked for 1 GPU; this machine has 0."),
        (4, 8, 2, "You asked for 2 GPUs; 1 of 4 GPUs is free now: ada has held 3 for 2 hours."),
        (4, 1, 2, "You asked for 2 GPUs; here a learner gets at most 1."),
    ],
)
def test_overasking_is_refused_in_words(total, most, count, words):
    slots = GpuSlots()
    slots.restore("ada", FOUR[:3], since=time.time() - 2 * 3600)
    with pytest.raises(Refused, match=words.replace(".", r"\.")) as refusal:
        slots.lease("grace", count, FOUR[:total], most)
    assert refusal.value.status_code == 409
    assert "grace" not in slots.leases


def test_a_vanished_gpu_is_not_handed_out():
    slots = GpuSlots()
    slots.restore("ada", FOUR[:1], since=0)
    with pytest.raises(Refused, match="1 of 2 GPUs is free"):
        slots.lease("grace", 2, ("GPU-a", "GPU-d"))
    assert slots.lease("grace", 1, ("GPU-a", "GPU-d")) == ("GPU-d",)


def test_all_who_hold_gpus_of_this_machine_are_named():
    slots = GpuSlots()
    assert slots.availability(FOUR) == "4 of 4 GPUs are free now"
    slots.lease("ada", 1, FOUR)
    slots.restore("grace", ["GPU-b", "GPU-that-failed"], since=time.time() - 3 * 3600)
    slots.restore("lin", ["GPU-that-failed"], since=0)
    assert slots.availability(FOUR, "simulated GPUs") == (
        "2 of 4 simulated GPUs are free now:"
        " ada has held 1 for less than a minute, grace has held 1 for 3 hours"
    )


@pytest.mark.parametrize(
    "seconds, words",
    [
        (-1, "less than a minute"),
        (59, "less than a minute"),
        (60, "1 minute"),
        (3599, "59 minutes"),
        (3600, "1 hour"),
        (86399, "23 hours"),
        (86400, "1 day"),
        (9e5, "10 days"),
    ],
)
def test_durations(seconds, words):
    assert gpu_slots.duration(seconds) == words


@pytest.mark.parametrize(
    "total, free, proposed_", [(8, 8, 2), (8, 3, 2), (8, 2, 1), (8, 1, 0), (8, 0, 0), (1, 1, 0)]
)
def test_who_just_presses_start_leaves_a_gpu_to_the_next(total, free, proposed_):
    assert gpu_slots.proposed(choices(total), free) == proposed_


@pytest.mark.parametrize(
    "junk",
    [None, [], "2", {"gpus": "2"}, {"gpus": True}, {"gpus": -1}, {"gpus": 1.0}, {"gpu": 1}],
)
def test_junk_is_refused(junk):
    with pytest.raises(Refused) as refusal:
        requested(junk)
    assert refusal.value.status_code == 400


def test_requested_counts():
    assert requested({}) == 0
    assert requested({"gpus": 3}) == 3


def test_choices_fit_the_machine():
    assert choices(0) == [0]
    assert choices(1) == [0, 1]
    assert choices(3) == [0, 1, 2, 3]
    assert choices(8) == [0, 1, 2, 4, 8]
    assert choices(8, most=2) == [0, 1, 2]


def test_environment_names_the_same_devices_twice():
    assert environment(("GPU-a", "GPU-b")) == {
        "CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b",
        "D2LMGPU_DEVICES": "gpu",
    }
    assert environment(()) == {"CUDA_VISIBLE_DEVICES": "", "D2LMGPU_DEVICES": "cpu"}
    assert environment(("sim-0", "sim-1"), simulated=True)["D2LMGPU_DEVICES"] == "cpu:2"


def driver_that(says, monkeypatch, folder):
    script = folder / "nvidia-smi"
    script.write_text(f"#!/bin/sh\n{says}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_present_gpus_asks_the_driver(monkeypatch, tmp_path):
    driver_that("echo GPU-a; echo GPU-b", monkeypatch, tmp_path)
    assert gpu_slots.present_gpus() == ("GPU-a", "GPU-b")


def test_a_broken_driver_is_no_machine_without_gpus(monkeypatch, tmp_path):
    driver_that("echo no communication with the driver; exit 9", monkeypatch, tmp_path)
    with pytest.raises(Refused, match="no communication with the driver") as refusal:
        gpu_slots.present_gpus()
    assert refusal.value.status_code == 503


def test_no_driver_is_no_gpu(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_slots.present_gpus() == ()
