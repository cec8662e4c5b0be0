"""The image and the cluster's values, as far as they can be checked without a cluster."""

import re
from pathlib import Path

import pytest
import yaml

import d2lmgpu

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "hub/Dockerfile").read_text()
VALUES = (ROOT / "hub/kubernetes/values.yaml").read_text()
README = (ROOT / "hub/README.md").read_text()
values = yaml.safe_load(VALUES)


def instructions():
    """(name, argument) of every instruction of the Dockerfile, continuations joined."""
    lines = [line for line in DOCKERFILE.splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in joined.splitlines() if line.strip()]


class OneKeyOnce(yaml.SafeLoader):
    """YAML that refuses a key given twice, of which the second would silently win."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key twice: {keys}"
        return super().construct_mapping(node, deep)


@pytest.mark.parametrize("name", ["values.yaml", "resources.yaml"])
def test_no_key_is_given_twice(name):
    list(yaml.load_all((ROOT / "hub/kubernetes" / name).read_text(), OneKeyOnce))


def test_the_top_level_is_what_the_chart_knows():
    known = {"hub", "proxy", "singleuser", "prePuller", "scheduling", "cull", "ingress", "debug"}
    assert set(values) <= known


def test_image_tags_are_pinned_and_one_version():
    image = values["singleuser"]["image"]
    assert image["tag"] == d2lmgpu.__version__
    assert f"d2lmgpu:{d2lmgpu.__version__}" in DOCKERFILE
    assert f"d2lmgpu:{d2lmgpu.__version__}" in README
    for name, argument in instructions():
        if name == "FROM":
            assert re.search(r":\d+\.\d+\.\d+", argument), argument


def test_the_chart_and_the_images_jupyterhub_fit():
    chart, hub = re.search(r"chart (\S+) \(JupyterHub ([\d.]+)\)", VALUES).groups()
    assert f"--version {chart}" in README
    assert ("ARG", f"JUPYTERHUB_VERSION={hub}") in instructions()


def test_the_profiles_offer_gpus_and_say_so_to_d2lmgpu():
    profiles = values["singleuser"]["profileList"]
    counts = []
    for profile in profiles:
        override = profile["kubespawner_override"]
        count = int(override.get("extra_resource_limits", {}).get("nvidia.com/gpu", 0))
        counts.append(count)
        assert profile["slug"] == f"gpus-{count}"
        assert override["environment"]["D2LMGPU_DEVICES"] == ("gpu" if count else "cpu")
    assert counts == [0, 1, 2, 4]
    assert [p.get("default", False) for p in profiles] == [True, False, False, False]
    assert profiles[0]["kubespawner_override"]["environment"]["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_the_data_volume_is_shared_and_read_only():
    storage = values["singleuser"]["storage"]
    volumes = {volume["name"]: volume for volume in storage["extraVolumes"]}
    mounts = {mount["name"]: mount for mount in storage["extraVolumeMounts"]}
    assert set(volumes) == set(mounts)
    claim = volumes["course-data"]["persistentVolumeClaim"]
    assert claim["readOnly"] and mounts["course-data"]["readOnly"]
    made = list(yaml.safe_load_all((ROOT / "hub/kubernetes/resources.yaml").read_text()))
    assert claim["claimName"] in [item["metadata"]["name"] for item in made]


def test_the_image_is_pulled_before_it_is_needed_and_quotas_hold():
    assert values["prePuller"]["hook"]["enabled"] and values["prePuller"]["continuous"]["enabled"]
    single = values["singleuser"]
    assert single["memory"]["limit"] and single["cpu"]["limit"] and single["storage"]["capacity"]
    assert values["hub"]["activeServerLimit"] and values["cull"]["enabled"]


def test_nobody_can_log_in_by_default_and_no_secret_is_kept():
    config = values["hub"]["config"]
    assert config["JupyterHub"]["authenticator_class"] == "null"
    assert not re.search(r"secret:|token:|password:|client_id", VALUES, re.I)


def test_the_image_runs_as_a_learner_and_copies_what_is_there():
    users = [argument for name, argument in instructions() if name == "USER"]
    assert users[-1] == "jovyan"
    for name, argument in instructions():
        if name == "COPY":
            *sources, _ = argument.split()
            for source in sources:
                assert (ROOT / source).exists(), source


def test_no_framework_meets_the_others_cuda():
    """What the image filters out of requirements.txt is in it: a renamed pin would slip by."""
    requirements = (ROOT / "requirements.txt").read_text()
    (mxnet, torch) = re.findall(r"grep -vE '(\S+)' requirements.txt", DOCKERFILE)
    taken = {"mxnet": mxnet, "torch": torch}
    for name in ("mxnet", "torch", "torchvision", "jupyterhub"):
        assert re.search(rf"^{name}==", requirements, re.M), name
    kept = [line for line in requirements.splitlines() if not re.match(taken["mxnet"], line)]
    assert not [line for line in kept if line.startswith(("mxnet==", "torch"))]
    kept = [line for line in requirements.splitlines() if not re.match(taken["torch"], line)]
    assert not [line for line in kept if line.startswith("mxnet==")]
    assert [line for line in kept if line.startswith("torch==")]
