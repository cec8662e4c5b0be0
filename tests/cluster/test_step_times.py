"""A step on shaped links takes what the page's model says, with the page's own code, at rest."""

from pathlib import Path

import numpy as np
import pytest
from box_traces import cluster_command

from d2lmgpu.course import chapters
from d2lmgpu.launch import launch

pytestmark = pytest.mark.soak  # what is timed wants a machine without other work

PAGE = Path(__file__).parents[2] / "chapters" / "clusters" / "many-machines.ipynb"


@pytest.fixture
def slow_links(cluster):
    cluster_command("rate", "100mbit", folder=cluster.folder, check=True)
    yield
    cluster_command("rate", "1gbit", folder=cluster.folder, check=True)


def test_a_step_takes_what_is_modelled_flat_and_hierarchical(slow_links):
    page = chapters.load(PAGE)
    results = launch(page["step_seconds"], 2, 1024, 3, hosts=["n1", "n2"], num_processes=2)
    assert set(results[0]) == {"plain", "fp16", "powerSGD", "hierarchical"}
    for scheme, link in (("plain", 2 * 3 / 4), ("hierarchical", 2 * 1 / 2)):
        # of few turns the best: whatever disturbs them only adds
        step, alone = (np.max([of[scheme][i] for of in results], axis=0).min() for i in (0, 1))
        seconds = link * page["bytes_sent"]("plain", 1024) * 8 / 100e6 * 1514 / 1448
        assert np.isclose(seconds, page["on_the_link"](scheme, 2, 2, "100mbit", 1024), rtol=1e-3)
        assert abs((alone + seconds) / step - 1) <= 0.2, (scheme, step, alone, seconds)


def test_one_server_makes_two_workers_wait_twice_as_long(slow_links):
    page, best = chapters.load(PAGE), {}
    for number in (1, 2):
        results = launch(
            page["push_and_pull"],
            page["SIZE"],
            3,
            hosts=["n1", "n2"],
            num_processes=1,
            num_servers=number,
        )
        assert [total for _, total in results] == [[3.0, 3.0]] * 2
        best[number] = np.max([taken for taken, _ in results], axis=0).min()
    assert abs(page["with_servers"](2, 1, "100mbit") / best[1] - 1) <= 0.2
    assert 1.5 < best[1] / best[2] < 2.5
