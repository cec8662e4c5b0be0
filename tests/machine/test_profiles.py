"""How much data and how many epochs: chosen by a variable, said in a sentence."""

import math
from dataclasses import FrozenInstanceError, replace

import pytest

from d2lmgpu.machine.profiles import PROFILES, ProfileError, profile


@pytest.mark.parametrize(
    "choice, gpus, name",
    [
        (None, 0, "quick"),
        (None, 1, "full"),
        ("auto", 0, "quick"),
        ("auto", 2, "full"),
        ("quick", 2, "quick"),
        ("full", 0, "full"),
        ("test", 2, "test"),
    ],
)
def test_the_choice(monkeypatch, choice, gpus, name):
    monkeypatch.delenv("D2LMGPU_PROFILE", raising=False)
    if choice:
        monkeypatch.setenv("D2LMGPU_PROFILE", choice)
    assert profile(gpus).name == name


@pytest.mark.parametrize("choice", ["", "Full", "fast"])
def test_an_unknown_profile_is_refused(monkeypatch, choice):
    monkeypatch.setenv("D2LMGPU_PROFILE", choice)
    with pytest.raises(ProfileError, match="Allowed: auto, quick, full, test") as refused:
        profile()
    assert repr(choice) in str(refused.value)


def test_the_full_profile_is_the_published_recipe():
    full = PROFILES["full"]
    assert (full.num_train, full.num_test) == (60_000, 10_000)
    assert (full.lenet_epochs, full.resnet_epochs, full.mnist_epochs) == (10, 10, 5)
    assert full.resnet_width == 64
    assert full.init_std(9) == full.init_std(800) == 0.01


def test_a_he_start_keeps_the_size_of_activations():
    assert PROFILES["quick"].init_std(50) == pytest.approx(math.sqrt(2 / 50))


@pytest.mark.parametrize("name", ["quick", "test"])
def test_the_sentence_of_a_short_profile_says_what_was_used(name):
    p = PROFILES[name]
    words = [
        f"{name} profile: {p.num_train:,} training and {p.num_test:,} test images",
        f"LeNet {p.lenet_epochs}, ResNet-18 {p.resnet_epochs}, MNIST CNN {p.mnist_epochs};",
        f"width {p.resnet_width}; He start",
        "D2LMGPU_PROFILE=full",
    ]
    assert [word for word in words if word not in str(p)] == []


def test_the_sentence_of_the_full_profile_says_that_it_is_the_recipe():
    sentence = str(PROFILES["full"])
    assert "60,000 training and 10,000 test images, the published recipe" in sentence


def test_a_profile_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        PROFILES["quick"].num_train = 1


def test_a_cap_on_the_images_changes_nothing_else(monkeypatch):
    monkeypatch.setenv("D2LMGPU_PROFILE", "quick")
    monkeypatch.setenv("D2LMGPU_IMAGES", "600")
    assert profile() == replace(PROFILES["quick"], num_train=600, num_test=100)
    monkeypatch.setenv("D2LMGPU_IMAGES", "100000")
    assert profile() == PROFILES["quick"]
    monkeypatch.setenv("D2LMGPU_IMAGES", "1")
    assert profile() == replace(PROFILES["quick"], num_train=1, num_test=1)


@pytest.mark.parametrize("cap", ["", "0", "-1", "many", "1.5"])
def test_a_cap_that_is_no_number_is_refused(monkeypatch, cap):
    monkeypatch.setenv("D2LMGPU_IMAGES", cap)
    with pytest.raises(ProfileError, match=r"D2LMGPU_IMAGES.*from 1 up") as refused:
        profile()
    assert repr(cap) in str(refused.value)
