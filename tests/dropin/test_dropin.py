"""Chapters as D2L writes them run with our backend in place of D2L's: one line is another.

Each file beside this one is such a chapter: D2L's calls, our own text. Where D2L asks PyTorch for
GPUs itself (scatter, cuda.synchronize) `split_batch` and `synchronize` stand.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent
PROGRAM = """
import sys
import numpy as np
chapter = __import__(sys.argv[1])
np.savez(sys.argv[2], *[chapter.train(num_gpus, 128, 0.1) for num_gpus in map(int, sys.argv[3:])])
"""


def train(chapter, tmp_path, *device_counts):
    """The trained parameters for each number of devices, and what the chapter printed."""
    tmp_path.mkdir(exist_ok=True)
    file = tmp_path / "parameters.npz"
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, chapter, str(file), *map(str, device_counts)],
        capture_output=True,
        text=True,
        cwd=FOLDER,
        env=os.environ | {"D2LMGPU_DEVICES": "cpu:2", "D2LMGPU_PROFILE": "test"},
    )
    parameters = list(np.load(file).values()) if file.exists() else None
    return parameters, run.stdout + run.stderr


@pytest.mark.parametrize("chapter", ["scratch_torch", "scratch_mxnet"])
def test_two_devices_train_as_one_does(chapter, tmp_path):
    parameters, printed = train(chapter, tmp_path, 1, 2)
    assert parameters is not None, printed
    single, double = parameters
    assert np.abs(single).max() > 0.01  # something was trained at all
    assert np.linalg.norm(single - double) <= 1e-4 * np.linalg.norm(single)
    assert printed.count("test acc: ") == 2


def test_gluon_on_two_devices_keeps_them_equal(tmp_path):
    """Batch normalization looks at a shard, so two devices are not one; one is the same twice."""
    parameters, printed = train("concise_mxnet", tmp_path, 2, 2, 1)
    assert parameters is not None, printed
    first, again, single = parameters
    assert np.array_equal(first, again)
    assert 0 < np.linalg.norm(first - single) < np.linalg.norm(single)
    assert printed.count("test acc: ") == 3


def test_data_parallel_over_cpu_devices_trains_on_one_and_says_so_of_each_run(tmp_path):
    """D2L wraps the network for one device, too."""
    parameters, output = train("concise_torch", tmp_path, 1, 2, 2)
    assert parameters is not None, output
    single, double, again = parameters
    assert np.array_equal(single, double) and np.array_equal(
        single, again
    )  # the second had no part in it
    assert output.count("test acc: ") == output.count("here one device of 2 did its work") == 3
