"""Ways to exchange gradients and to begin, none of which is a training in one process."""

from pathlib import Path

import pytest
from soaking import sample

from d2lmgpu.watch.explain.script import explain_script

FOLDER = Path(__file__).parent / "ways"
SCRIPTS = {path.name: path for path in sorted(FOLDER.glob("*.py"))}
BY_HAND = FOLDER.parents[1] / "check" / "outcomes" / "sharded_by_hand.py"  # for check, too
SCRIPTS[BY_HAND.name] = BY_HAND


@pytest.mark.needs("cores")
@pytest.mark.parametrize("script", sample(["ring.py"], SCRIPTS))
def test_what_exchanges_gradients_is_not_told_to_train_apart(script):
    answer = explain_script(SCRIPTS[script])
    assert answer.run.k == 2 and all(rank["distributed"] for rank in answer.run.ranks)
    assert "data-parallel" not in [cause.name for cause in (answer.cause, *answer.others) if cause]


@pytest.mark.needs("cores")
def test_what_never_joins_a_group_is_one_training(tmp_path):
    script = tmp_path / "alone.py"
    script.write_text(
        "import torch\nnet = torch.nn.Linear(9, 1)\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
        "for _ in range(40):\n    net(torch.ones(8, 9)).sum().backward()\n    opt.step()\n"
    )
    answer = explain_script(script)
    assert answer.run.k == 1 and answer.cause.name == "data-parallel"
