"""A training on three hosts goes on after it was harmed, with the weights that it would have had.

Two harms; ``make soak-cluster`` has five of each, at random moments, also those after which fewer
or more ranks train.
"""

import importlib.util
import subprocess
import sys

from elastic_run import PAGE
from rounds import cheap, same_ranks


def test_the_same_ranks_end_bit_for_bit(three_hosts, tmp_path):
    outcome = same_ranks(three_hosts, tmp_path, names=["SIGTERM, started again"])
    assert cheap(outcome["rows"]), outcome
    assert outcome["rows"][-1]["repeated"] == 0, "SIGTERM did not save"
    assert outcome["apart"] == 0


def test_what_cannot_begin_ends_in_words():
    elastic = [sys.executable, PAGE / "elastic.py"]
    done = subprocess.run(elastic, text=True, capture_output=True)
    assert done.returncode == 1 and 'python elastic.py "n1 n2 n3"' in done.stderr
    nowhere = [*elastic, "nowhere.invalid", "train_elastic.py"]
    done = subprocess.run(nowhere, text=True, capture_output=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Host nowhere.invalid cannot be reached: ssh: ")


def test_hosts_that_stay_away_are_given_up(monkeypatch):
    """The loop of the launcher, with less patience."""
    spec = importlib.util.spec_from_file_location("elastic", PAGE / "elastic.py")
    elastic = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(elastic)
    monkeypatch.setattr(elastic, "ALONE", 3)
    text = elastic.keep([elastic.Host("nowhere.invalid", 1, "127.0.0.1:1", ["script.py"])])
    assert text.startswith("No host could be reached for 3 s") and "nowhere.invalid" in text
