"""All scripts, five times each, and the table of verdicts: ``pytest -s tests/check/table.py``."""

from collections import Counter

from scripts_of import expected

from d2lmgpu.watch.check.run import check

RUNS = 5
TOLD = ("right_batch-norm", "right_dropout")  # right, and the weights differ


def test_verdicts_are_right_and_stay():
    rows = {path: [check(path) for _ in range(RUNS)] for path in expected()}
    named, stable, alarms, missed = 0, 0, [], []
    print(
        "\n| script | expected | said, in five runs | equal | difference |\n|---|---|---|---|---|"
    )
    for path, verdicts in rows.items():
        said, wanted = Counter(one.defect for one in verdicts), expected()[path]
        words = ", ".join(f"{name} {times}" for name, times in said.most_common())
        first = verdicts[0]
        print(f"| {path.stem} | {wanted} | {words} | {first.equal} | {first.difference:.1e} |")
        stable += len(said) == 1
        if wanted == "none":
            alarms += [path.stem] * (said["none"] < RUNS)
            assert first.equal == (path.stem not in TOLD), path.stem
        else:
            named += said[wanted] == RUNS
            missed += [path.stem] * (said["none"] > 0)
    defects = sum(wanted != "none" for wanted in expected().values())
    print(
        f"named rightly in all runs: {named} of {defects}; the same verdict in all runs: {stable}"
    )
    assert alarms == [] and missed == []
    assert named >= 0.85 * defects
