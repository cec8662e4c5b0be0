"""What a mend gave, of answers whose times are given: no script runs here."""

import copy
import json

import pytest
from reports import CASES, ONE_DEVICE, rank
from schemas import stated

from d2lmgpu import __main__ as cli
from d2lmgpu.watch import MisuseError, WatchError
from d2lmgpu.watch.explain import change
from d2lmgpu.watch.explain.answer import Refused
from d2lmgpu.watch.explain.pair import answer
from d2lmgpu.watch.explain.summary import Summary

SLOW = [rank(i, loading=20) for i in (0, 1)]


@pytest.fixture
def answer_of(calibrated):
    """The answer to such reports, as JSON brings it back."""

    def ask(reports=CASES["none"], single=ONE_DEVICE):
        return json.loads(json.dumps(answer("train.py", single, Summary(reports)).as_dict()))

    return ask


def test_every_answer_is_as_its_schema_has_it(answer_of):
    assert all(stated(answer_of(reports)) for reports in CASES.values())
    assert stated(answer_of([rank(0, ddp=False, distributed=False)], None))
    assert stated(Refused("It never trains.").as_dict())


def test_a_mend_is_told_with_its_parts(answer_of):
    before, now = answer_of(SLOW), answer_of()
    comparison = change.Against(before, now)
    both = comparison.as_dict()
    assert stated(both) and comparison.reason is None and both["outcome"] == now["outcome"]
    assert both["against"]["seconds"] == pytest.approx([0.040, 0.020])
    assert both["against"]["times"] == pytest.approx(2)
    assert both["against"]["parts"]["loading"] == pytest.approx([0.020, 0])
    assert both["against"]["parts"]["forward"] == pytest.approx([0.010, 0.010])
    assert both["against"]["cause"] == ["loader", "none"]
    assert both["against"]["speedup"] == [1, 2]
    assert "2.00 times" in str(comparison) and "faster" in str(comparison)


def test_twice_the_rows_in_twice_the_time_are_no_change(answer_of):
    more = [rank(i, 20, 20, rows=1280) for i in (0, 1)]
    comparison = change.Against(answer_of(), answer_of(more))
    assert comparison.times == pytest.approx(1) and "no change" in str(comparison)
    assert "slower" in str(change.Against(answer_of(), answer_of(SLOW)))


def other(before, **parts):
    return copy.deepcopy(before) | parts


@pytest.mark.parametrize(
    "parts, words",
    [
        ({"machine": {"cpu": "another", "cores": 96}}, "96 cores"),
        ({"devices": [1, 4]}, "1 and 4"),
        ({"unsteady": "other programs had the cores"}, "other programs had the cores"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_words(answer_of, parts, words):
    comparison = change.Against(other(answer_of(SLOW), **parts), answer_of())
    both = comparison.as_dict()
    assert words in comparison.reason and comparison.reason in str(comparison) and stated(both)
    assert both["outcome"] == "not explained" and both["against"]["times"] is None


def test_times_that_drift_or_wait_for_other_programs_are_unsteady(answer_of):
    assert answer_of()["unsteady"] is None
    assert answer_of([rank(i, queued=50) for i in (0, 1)])["unsteady"]
    early, late = ([rank(i, forward) for i in (0, 1)] for forward in (10, 20))
    for early_rank, other in zip(early, late):
        early_rank["measured_steps"] = (
            early_rank["measured_steps"][:5] + other["measured_steps"][5:]
        )
    assert "1.50 times" in answer_of(early)["unsteady"]


@pytest.mark.parametrize(
    "content, words",
    [
        ("{", "no JSON"),
        ("[]", "not of explain"),
        ('{"schema_version": 1, "command": "check"}', "not of explain"),
        ('{"schema_version": 7, "command": "explain"}', "schema_version 7"),
        (json.dumps(Refused("It never trains.").as_dict()), "It never trains"),
    ],
)
def test_what_is_no_earlier_answer_is_refused_before_anything_runs(
    content, words, tmp_path, monkeypatch, capsys
):
    path = tmp_path / "before.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(MisuseError, match=words):
        change.read(path)
    monkeypatch.setattr("d2lmgpu.watch.run.run", lambda *_, **__: 1 / 0)
    assert cli.main(["explain", "--against", str(path), "train.py"]) == cli.MISUSE
    assert words in capsys.readouterr().err


@pytest.fixture
def asked(monkeypatch, capsys):
    """(exit code, what was printed) of the command, whose script's steps are given."""

    def ask(reports, *options):
        def explained(*_, **__):
            if reports is None:
                raise WatchError("It never trains.")
            return answer("train.py", ONE_DEVICE, Summary(reports))

        monkeypatch.setattr("d2lmgpu.watch.explain.script.explain_script", explained)
        code = cli.main(["explain", *options, "train.py"])
        return code, capsys.readouterr().out

    return ask


def test_the_command_has_an_exit_code_for_each_outcome(asked, calibrated, tmp_path):
    assert asked(CASES["none"])[0] == 0
    code, printed = asked(SLOW, "--json")
    assert code == 1 and stated(json.loads(printed))
    before = tmp_path / "before.json"
    before.write_text(printed, encoding="utf-8")
    assert asked(CASES["none"], "--against", str(before))[0] == 0
    code, printed = asked([rank(i, queued=50) for i in (0, 1)], "--json", "--against", str(before))
    assert code == 2 and stated(json.loads(printed))
    code, printed = asked(None, "--json")
    assert code == 2 and stated(json.loads(printed))


def test_causes_are_annotated_at_their_lines(asked, calibrated):
    assert "::" not in asked(SLOW)[1]
    assert "\n::warning file=train.py,line=4," in asked(SLOW, "--github")[1]
    assert asked(None, "--github")[1].startswith("::warning file=train.py,title=")
