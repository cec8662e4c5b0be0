"""A checkpoint is whole or not there, holds everything, and a bad one gives way to the one before.

What a file holds is read here by hand too: a header, a JSON, bytes.
"""

import hashlib
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from d2lmgpu.process import checkpoints
from d2lmgpu.process.checkpoints import CheckpointError


def network(width=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, width), nn.BatchNorm1d(width), nn.Linear(width, 2))


def trained(steps=1, optimizer=torch.optim.Adam):
    net = network()
    optimizer = optimizer(net.parameters(), 0.1)
    for _ in range(steps):
        net(torch.randn(5, 4)).sum().backward()
        optimizer.step()
    return net, optimizer


def steps(folder):
    return sorted(int(file.name.split("-")[1]) for file in folder.iterdir())


@pytest.fixture
def three(tmp_path):
    """A folder in which 10, 20 and 30 were saved: the last two are there, 30 first."""
    net = network()
    for step in (10, 20, 30):
        with torch.no_grad():
            net[0].weight.fill_(step)
        checkpoints.save(tmp_path, step, net, sampler={"epoch": step})
    return sorted(tmp_path.iterdir(), reverse=True)


def renamed(file, data):
    """The file with other bytes, under the name that they ask for."""
    file.unlink()
    digits = hashlib.sha256(data).hexdigest()[:16]
    file = file.with_name(f"{file.name[:14]}{digits}.safetensors")
    file.write_bytes(data)
    return file


def with_header(file, change):
    """The file with a header in which ``change`` has changed what we say of it."""
    data = file.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    about = json.loads(header["__metadata__"].pop("d2lmgpu"))
    change(about)
    if about:
        header["__metadata__"]["d2lmgpu"] = json.dumps(about)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return renamed(file, struct.pack("<Q", len(text)) + text + data[8 + size :])


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD, torch.optim.AdamW])
def test_all_of_a_training_comes_back(tmp_path, kind):
    net, optimizer = trained(3, kind)
    rest = {
        "sampler": {"epoch": 4, "position": 120},
        "lr": 0.1,
        "nothing": None,
        "a": [1, (2, "b")],
    }
    checkpoints.save(tmp_path, 7, net, optimizer=optimizer.state_dict(), **rest)
    checkpoint = checkpoints.newest(tmp_path, network())
    assert checkpoint.step == 7
    assert {name: checkpoint.rest[name] for name in rest} == rest
    other, own = network(), kind(network().parameters(), 0.5)
    own = kind(other.parameters(), 0.5)
    other.load_state_dict(checkpoint.net)
    own.load_state_dict(checkpoint.rest["optimizer"])
    x = torch.randn(5, 4)
    for net_, its in ((net, optimizer), (other, own)):
        its.zero_grad()
        net_(x).square().sum().backward()
        its.step()
    for name, value in net.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_numbers_keep_their_bits(tmp_path, dtype):
    net = network().to(dtype)
    checkpoints.save(tmp_path, 1, net)
    checkpoint = checkpoints.newest(tmp_path, net)
    assert all(torch.equal(checkpoint.net[k], v) for k, v in net.state_dict().items())


def test_shared_weights_and_views_are_kept(tmp_path):
    net = network()
    net.add_module("twin", net[0])
    checkpoints.save(tmp_path, 1, net, view=torch.arange(12).reshape(3, 4).T)
    checkpoint = checkpoints.newest(tmp_path, net)
    assert torch.equal(checkpoint.net["twin.weight"], net[0].weight)
    assert torch.equal(checkpoint.rest["view"], torch.arange(12).reshape(3, 4).T)


def test_random_numbers_go_on_where_they_were(tmp_path):
    import random

    def drawn():
        return random.random(), np.random.randn(), torch.randn(3).tolist()

    drawn()
    checkpoints.save(tmp_path, 1, network(), random=checkpoints.random_states())
    state = checkpoints.newest(tmp_path, network()).rest["random"]
    checkpoints.set_random_states(state)
    expected = drawn()
    assert drawn() != expected
    checkpoints.set_random_states(state)
    assert drawn() == expected


def test_the_last_two_are_kept_and_a_folder_without_any_is_a_beginning(three, tmp_path):
    assert steps(tmp_path) == [20, 30]
    assert checkpoints.newest(tmp_path / "none", network()) is None


def flipped(file):
    data = bytearray(file.read_bytes())
    data[-3] ^= 4
    file.write_bytes(data)


def truncated(file):
    os.truncate(file, file.stat().st_size // 2)


def emptied(file):
    os.truncate(file, 0)


def newer(file):
    with_header(file, lambda about: about.update(format=2))


def foreign(file):
    with_header(file, lambda about: about.update(framework="mxnet"))


def not_ours(file):
    with_header(file, dict.clear)


def another_model(file):
    file.unlink()
    checkpoints.save(file.parent, 30, network(width=5))


BAD = {
    flipped: "damaged",
    truncated: "damaged",
    emptied: "damaged",
    newer: "newer",
    foreign: "mxnet",
    not_ours: "not written by",
    another_model: "(5, 4)",
}


@pytest.mark.parametrize("harm", BAD)
def test_a_bad_one_is_refused_by_name_and_the_one_before_is_used(three, harm, tmp_path):
    harm(three[0])
    bad = max(tmp_path.iterdir())
    with pytest.warns(UserWarning) as warned:
        checkpoint = checkpoints.newest(tmp_path, network())
    (message,) = (str(warning.message) for warning in warned)
    assert bad.name in message and BAD[harm] in message and three[1].name in message
    assert checkpoint.step == 20 and checkpoint.net["0.weight"][0, 0] == 20
    assert checkpoint.rest == {"sampler": {"epoch": 20}}


def test_one_that_cannot_be_unpickled_safely_never_runs(three, tmp_path):
    """A pickle that would act, under a name with its right checksum."""
    import pickle

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "it ran"),)

    renamed(three[0], pickle.dumps(Evil()) * 50)
    with pytest.warns(UserWarning, match="not written by"):
        assert checkpoints.newest(tmp_path, network()).step == 20
    assert not (tmp_path / "it ran").exists()


def test_if_none_is_good_nothing_begins_anew(three, tmp_path):
    truncated(three[0])
    newer(three[1])
    with pytest.raises(CheckpointError) as caught:
        checkpoints.newest(tmp_path, network())
    assert all(file.name in str(caught.value) for file in tmp_path.iterdir())


def test_a_training_that_went_back_saves_again(three, tmp_path):
    """30 is damaged, 20 is used; 30 comes again, and 40: the damaged one goes in its turn."""
    flipped(three[0])
    for step in (30, 40):
        net = network()
        net[0].bias.data.fill_(step)
        checkpoints.save(tmp_path, step, net)
        with warnings.catch_warnings(action="error"):  # of two with 30 the later one comes first
            assert checkpoints.newest(tmp_path, network()).step == step
    assert len(list(tmp_path.iterdir())) == 2
    checkpoints.save(tmp_path, 50, network())
    assert steps(tmp_path) == [40, 50] and three[0] not in tmp_path.iterdir()


def test_a_full_disk_leaves_the_last_one_and_is_told(three, tmp_path):
    """The system lets no file of this process grow beyond a half of a checkpoint."""
    size, limits = three[0].stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, limits[1]))
    try:
        with pytest.raises(CheckpointError) as caught:
            checkpoints.save(tmp_path, 40, network())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert "Step 40" in str(caught.value) and three[0].name in str(caught.value)
    assert sorted(tmp_path.iterdir(), reverse=True) == three
    assert checkpoints.newest(tmp_path, network()).step == 30
    checkpoints.save(tmp_path, 40, network())
    assert steps(tmp_path) == [30, 40]


@pytest.mark.parametrize("moment", ["os.fsync", "os.replace"])
def test_killed_while_it_writes_leaves_what_was_there(three, moment, tmp_path):
    code = f"""if True:
        import os, signal, sys
        from torch import nn
        from d2lmgpu.process import checkpoints
        {moment} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        checkpoints.save(sys.argv[1], 40, nn.Linear(4, 2))
        """
    done = subprocess.run([sys.executable, "-c", code, tmp_path])
    assert done.returncode == -signal.SIGKILL
    assert [*tmp_path.glob(".step-*")]
    assert checkpoints.newest(tmp_path, network()).step == 30
    checkpoints.save(tmp_path, 40, network())
    assert steps(tmp_path) == [30, 40] and not [*tmp_path.glob(".step-*")]


@pytest.mark.parametrize("value", [{1, 2}, np.ones(2), object()])
def test_what_cannot_be_kept_is_refused_by_name(tmp_path, value):
    with pytest.raises(CheckpointError, match="sampler/seen/1"):
        checkpoints.save(tmp_path, 1, network(), sampler={"seen": [0, value]})
    assert list(tmp_path.iterdir()) == []
