"""The lab's page of recorded runs: no wrong speedup, and a page whatever a record lacks."""

import json

import pytest
from bs4 import BeautifulSoup

from d2lmgpu.lab.page import page
from d2lmgpu.records import store

ABOUT = {
    "schema": 2,
    "versions": {},
    "commit": "0123456789abcdef",
    "date": "now",
    "command": "make it",
    "machine": {"cpu": "A CPU", "cores": 2, "memory_gib": 8, "gpus": [], "system": "Linux"},
}
RUN = {
    "num_gpus": 1,
    "batch_size": 64,
    "lr": 0.1,
    "num_samples": 600,
    "sharing": "one device",
    "accuracies": [0.5, 0.75],
    "seconds": [2.0, 2.0],
    "kind": "measured",
    "round": 0,
}


def shown(folder, *runs, **others):
    (folder / "x.json").write_text(json.dumps(ABOUT | {"runs": runs} | others))
    return BeautifulSoup(page("", folder), "html.parser")


def records(soup):
    """What the scripts of the page draw."""
    (data,) = soup.select("script[type='application/json']")
    return json.loads(data.string)


def speedups(soup):
    """The column of that name in each table of the page, as it stands and as it is drawn."""
    for table in soup.select("table"):
        names = [cell.string for cell in table.select("th")]
        if "Speedup" in names:
            for row in table.select("tbody tr"):
                yield row.select("td")[names.index("Speedup")].get_text()
    for record in records(soup):
        for row in record["table"]["rows"]:
            yield row["cells"].get("Speedup", "")


def test_runs_that_did_not_take_turns_show_no_speedup():
    for path in store.FOLDER.glob("*.json"):
        record = store.read(path)
        if record["schema"] == 1 and record.get("runs"):
            soup = BeautifulSoup(page(path.stem), "html.parser")
            assert set(speedups(soup)) <= {"", "–", "1.00"}
            assert {
                speedup["median"] for shown in records(soup) for speedup in shown["speedups"]
            } <= {1}


def test_one_run_against_three_shows_no_speedup(tmp_path):
    two = {"num_gpus": 2, "sharing": "in parallel", "seconds": [0.88, 0.88]}
    runs = [{k: v for k, v in run.items() if k != "round"} for run in (RUN, *[RUN | two] * 3)]
    assert set(speedups(shown(tmp_path, *runs, schema=1))) <= {"", "–", "1.00"}


def test_interleaved_runs_of_one_batch_show_theirs(tmp_path):
    two = {"num_gpus": 2, "sharing": "in parallel", "seconds": [1.25, 1.25]}
    runs = [RUN | more | {"round": i} for i in range(5) for more in ({}, two)]
    soup = shown(tmp_path, *runs, *[RUN | {"num_gpus": 4, "sharing": "simulated", "round": None}])
    assert list(speedups(soup)) == 2 * ["1.00", "1.60", ""]
    (record,) = records(soup)
    assert [(speedup["num_gpus"], speedup["median"]) for speedup in record["speedups"]] == [
        (1, 1.0),
        (2, 1.6),
    ]
    assert [run["row"] for run in record["runs"]] == [1, 2, 3], "of repeats the first is drawn"


@pytest.mark.parametrize(
    "lacking",
    [
        {"accuracies": []},
        {"seconds": []},
        {"accuracies": [], "seconds": []},
        {"num_samples": None},
        {"num_samples": None, "accuracies": [], "seconds": [], "sharing": None},
        {"accuracies": [0.5], "seconds": [1.0, 2.0, 3.0]},
        {"seconds": [0.0, 0.0]},
    ],
)
def test_a_record_without_some_numbers_is_a_page_all_the_same(tmp_path, lacking):
    (record,) = records(shown(tmp_path, RUN, RUN | lacking | {"lr": 0.5}))
    assert [run["settings"]["lr"] for run in record["runs"]] == [0.1, 0.5]
    assert record["runs"][0]["curves"]["test accuracy"][-1][-1] == 0.75
    only = shown(tmp_path, RUN | lacking)
    assert len(records(only)[0]["runs"]) == 1 and "None" not in only.get_text()


def test_the_chooser_has_machine_and_training_in_words(tmp_path):
    (record,) = records(shown(tmp_path, RUN, profile="quick profile: little."))
    assert record["machine"] == "2 CPU cores (A CPU)" and record["training"] == "x, quick profile"


@pytest.mark.parametrize(
    "wrong",
    [
        {"seconds": [float("inf")]},
        {"seconds": [-1.0]},
        {"accuracies": [float("nan")]},
        {"seconds": None},
        {"accuracies": ["0.5"]},
        {"num_samples": "many"},
        {"num_gpus": "2"},
        {"num_gpus": None},
        {"batch_size": [256]},
        {"lr": "0.1"},
        {"sharing": 3},
        {"round": "1"},
    ],
)
def test_a_record_whose_numbers_are_none_is_refused_by_name(tmp_path, wrong):
    with pytest.raises(store.RecordError, match=r"x\.json(: run 2| is no record.*no number)"):
        shown(tmp_path, RUN, RUN | wrong)


def test_a_record_without_settings_or_runs(tmp_path):
    with pytest.raises(store.RecordError, match="num_gpus"):
        shown(tmp_path, {k: v for k, v in RUN.items() if k != "num_gpus"})
    assert "No runs have been recorded" in shown(tmp_path).get_text()
