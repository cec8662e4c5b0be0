"""Defects that people report: named with the line, in scripts of unlike styles.

Their right look-alikes are in ``table.py``, with all others.
"""

import pytest
from scripts_of import FOLDER
from soaking import sample

from d2lmgpu.watch.check import words
from d2lmgpu.watch.check.run import check

LINES = {
    "evaluation_1": "hits / len(test_data)",
    "evaluation_2": "test_loss /= size",
    "evaluation_3": "float(hits) / len(x)",
    "evaluation_4": "val_acc=",
    "evaluation_5": "log.info(",
    "evaluation_6": "valid ppl",
    "norm_1": "dist.all_reduce(square)",
    "norm_2": "p.grad.norm()",
    "norm_3": "get_total_norm",
    "nothing-learned_1": "nn.functional.cross_entropy",
    "nothing-learned_2": "torch.optim.AdamW",
    "nothing-learned_3": "torch.optim.SGD",
    "partly-exchanged_1": "no_sync()",
    "partly-exchanged_2": "backward()",
    "partly-exchanged_3": "dist.all_reduce",
    "sampler_5": "DistributedSampler(data)",
    "sampler_6": "random_split",
    "schedule_1": "scheduler.step()",
    "schedule_2": "self.scheduler.step()",
}


@pytest.mark.parametrize("script", sample(["nothing-learned_1", "partly-exchanged_1"], LINES))
def test_a_reported_defect_is_named_with_its_line(script):
    path = FOLDER / f"{script}.py"
    verdict = check(path)
    assert (verdict.outcome, verdict.defect) == ("different", script.rpartition("_")[0])
    assert LINES[script] in words.code(verdict.where, path)
