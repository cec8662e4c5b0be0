"""The hub refuses what is misspelt or out of range, in words, before it opens a port."""

import re
import sys
from dataclasses import fields
from pathlib import Path
from urllib.parse import urlparse

import pytest
from safety import SettingError
from settings import Settings, read

TRY_OUT = {"HUB_PASSWORD": "12345678"}


def refusal(change):
    with pytest.raises(SettingError) as error:
        read({**TRY_OUT, **change}, is_root=False)
    return str(error.value)


def test_defaults_are_a_private_try_out():
    settings = read(TRY_OUT, is_root=False)
    assert settings.on_loopback
    assert settings.accounts == "one"
    assert settings.python == sys.executable


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_an_address_of_loopback_makes_a_url(address):
    settings = read({**TRY_OUT, "HUB_ADDRESS": address}, is_root=False)
    assert settings.on_loopback
    url = urlparse(settings.url)
    assert (url.scheme, url.hostname, url.port) == ("http", address, 8000)


@pytest.mark.parametrize("address", ["127.0.0.1:8000", "[::1]", "http://127.0.0.1"])
def test_an_address_is_no_more_than_an_address(address):
    assert f"not {address!r}: the port goes into HUB_PORT" in refusal({"HUB_ADDRESS": address})


@pytest.mark.parametrize(
    "change, words",
    [
        ({"HUB_TLS_KEY": __file__}, "belong together"),
        ({"HUB_SUBDOMAIN_HOST": "http://hub.example.org"}, "https://"),
        ({"HUB_TLS_CERTIFICATE": "x"}, "HUB_TLS_CERTIFICATE is no setting"),
    ],
)
def test_misspelt_settings_are_refused(change, words):
    assert words in refusal(change)


@pytest.mark.parametrize("wrong", ["HUB_TLS_KEY", "HUB_TLS_CERT"])
def test_a_certificate_is_a_file_that_is_there(wrong, tmp_path):
    files = {"HUB_TLS_KEY": __file__, "HUB_TLS_CERT": __file__}
    assert read({**TRY_OUT, **files}, is_root=False).url == "https://127.0.0.1:8000"
    for path in (tmp_path / "none.pem", tmp_path):
        assert f"{wrong}={str(path)!r} is no file" in refusal({**files, wrong: str(path)})


@pytest.mark.parametrize(
    "variable, words",
    [
        ("HUB_PORT", "a whole number from 1 to 65533"),
        ("HUB_CREATE_ACCOUNTS", "a whole number from 0 to 1"),
        ("HUB_CPUS", "a number from 0.01 on"),
        ("HUB_GPUS_PER_LEARNER", "a whole number from 0 on"),
        ("HUB_SIMULATED_GPUS", "a whole number from 0 on"),
        ("HUB_IDLE_TIMEOUT", "a whole number from 1 on"),
        ("HUB_MAX_AGE", "a whole number from 0 on"),
    ],
)
def test_a_number_has_a_range(variable, words):
    rule = rules()[variable.removeprefix("HUB_").lower()]
    least, most = rule["least"], rule["most"]
    for text in ("eighty", "nan", "inf", "-5", str(least - 0.001), str(int(least) - 1)):
        assert f"{variable} must be {words}, not {text!r}" in refusal({variable: text})
    read({**TRY_OUT, variable: str(least)}, is_root=False)
    if most < 1e9:
        assert words in refusal({variable: str(most + 1)})
        read({**TRY_OUT, variable: str(most)}, is_root=False)


def rules():
    """{name: its range} of every setting that is a number."""
    return {field.name: field.metadata for field in fields(Settings) if field.metadata}


def test_every_number_has_a_range():
    assert set(rules()) == {field.name for field in fields(Settings) if field.type is not str}


@pytest.mark.parametrize("memory", ["lots", "8", "-8G", "0G", "nanG", "infG", "G", "8 GB"])
def test_memory_is_a_size(memory):
    assert f"such as 8G or 512M, not {memory!r}" in refusal({"HUB_MEMORY": memory})


@pytest.mark.parametrize("memory, mebibytes", [("8G", 8192), ("512M", 512), ("1.5G", 1536)])
def test_sizes_of_memory(memory, mebibytes):
    assert read({**TRY_OUT, "HUB_MEMORY": memory}, is_root=False).memory == mebibytes * 2**20


def test_the_readme_lists_every_setting_and_no_other():
    text = (Path(__file__).resolve().parents[2] / "hub/README.md").read_text()
    listed = set(re.findall(r"`HUB_([A-Z_]+)[`=]", text)) | set(re.findall(r"HUB_([A-Z_]+)=", text))
    assert listed == {field.name.upper() for field in fields(Settings)}
