"""The package alone: pip install d2lmgpu[torch,lab], and nothing of the course around it."""

import json

import pytest
from free_host import ROOT

RUNS = """
import json, sys
from d2lmgpu import torch as d2l
from d2lmgpu.course import explorers, forecasting
from d2lmgpu.lab.page import page
from d2lmgpu.launch import launch
from d2lmgpu.records import store

def rank():
    import torch.distributed as dist
    return dist.get_rank()

print(json.dumps({
    "package": d2l.__file__,
    "ranks": launch(rank, num_processes=2),
    "explorer": explorers.overlap()._repr_html_(),
    "records": sorted(path.name for path in store.FOLDER.glob("*.json")),
    "page": page("scratch-pytorch"),
    "chapter": str(forecasting.notebook("lenet", "torch")),
    "frameworks": [name for name in ("mxnet", "d2l", "torchvision") if name in sys.modules],
}))
"""


@pytest.fixture(scope="module")
def facts(alone, tmp_path_factory):
    return json.loads(alone.run("-c", RUNS, cwd=tmp_path_factory.mktemp("empty")))


def test_it_is_the_installed_package(alone, facts):
    assert facts["package"].startswith(str(alone.folder)) and not facts["frameworks"]
    assert alone.run("-m", "pip", "check").strip() == "No broken requirements found."


def test_launch_runs_two_processes(facts):
    assert facts["ranks"] == [0, 1]


def test_records_and_chapters_are_those_of_the_course(alone, facts):
    assert facts["records"] == sorted(path.name for path in ROOT.glob("records/*.json"))
    assert facts["chapter"].startswith(str(alone.folder))


def test_an_explorer_brings_its_script_and_a_lab_its_records(facts):
    assert "<script>" in facts["explorer"] and "<style>" in facts["explorer"]
    assert facts["page"].count("<table>") >= 1
