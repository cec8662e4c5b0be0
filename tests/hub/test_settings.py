"""The hub refuses what is unsafe or misspelt, in words, before it opens a port."""

import re
import stat
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import settings as hub_settings
from settings import SettingError, Settings, check_own_accounts, read

PUBLIC = {
    "HUB_ADDRESS": "0.0.0.0",
    "HUB_AUTH": "pam",
    "HUB_USERS": "ada grace",
    "HUB_TLS_KEY": "/etc/hub/key.pem",
    "HUB_TLS_CERT": "/etc/hub/cert.pem",
    "HUB_PYTHON": "/usr/bin/env",
}


@pytest.fixture(autouse=True)
def a_machine_that_is_set_up(monkeypatch):
    monkeypatch.setattr(hub_settings, "check_own_accounts", lambda settings: None)


def refusal(environ, is_root=True):
    with pytest.raises(SettingError) as error:
        read(environ, is_root)
    return str(error.value)


def test_a_safe_public_hub_is_allowed():
    settings = read(PUBLIC, is_root=True)
    assert settings.allowed_users == {"ada", "grace"}
    assert settings.accounts == "own"
    assert not settings.on_loopback


@pytest.mark.parametrize("open_to_all", ["dummy", "shared-password"])
@pytest.mark.parametrize("address", ["0.0.0.0", "192.0.2.7", "hub.example.org", "::"])
def test_no_open_login_where_others_can_reach_it(open_to_all, address):
    environ = {**PUBLIC, "HUB_AUTH": open_to_all, "HUB_PASSWORD": "long enough"}
    environ["HUB_ADDRESS"] = address
    assert "anybody be anybody" in refusal(environ)


def test_an_open_login_by_its_class_is_found_too():
    environ = {**PUBLIC, "HUB_AUTH": "jupyterhub.auth.DummyAuthenticator"}
    assert "anybody be anybody" in refusal(environ)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_an_open_login_on_loopback_is_allowed(address):
    environ = {"HUB_ADDRESS": address, "HUB_AUTH": "dummy"}
    assert read(environ, is_root=False).on_loopback


@pytest.mark.parametrize(
    "change, words",
    [
        ({"HUB_ACCOUNTS": "one"}, "an own account"),
        ({"HUB_TLS_KEY": "", "HUB_TLS_CERT": ""}, "in the clear"),
        ({"HUB_TLS_KEY": ""}, "belong together"),
        ({"HUB_USERS": ""}, "who may log in"),
        ({"HUB_SUBDOMAIN_HOST": "http://hub.example.org"}, "https://"),
        ({"HUB_AUTH": "oauth-of-nobody"}, "is not installed"),
        ({"HUB_PORT": "eighty"}, "HUB_PORT must be a number, not 'eighty'"),
        ({"HUB_TLS_CERTIFICATE": "x"}, "HUB_TLS_CERTIFICATE is no setting"),
        ({"HUB_ACCOUNTS": "some"}, "'own' or 'one'"),
    ],
)
def test_unsafe_or_misspelt_settings_are_refused(change, words):
    assert words in refusal({**PUBLIC, **change})


def test_everybody_with_a_public_account_is_refused(monkeypatch):
    from jupyterhub.auth import PAMAuthenticator

    monkeypatch.setattr(hub_settings, "authenticator_class", lambda name: PAMAuthenticator)
    environ = {"HUB_AUTH": "github", "HUB_USERS": "*"}
    assert "everybody who has an account" in refusal(environ)


def test_own_accounts_take_root():
    assert "run as root" in refusal({"HUB_ACCOUNTS": "own", "HUB_PASSWORD": "12345678"}, False)


def test_a_short_shared_password_is_refused():
    assert "8 characters" in refusal({"HUB_PASSWORD": "1234567"}, is_root=False)


def test_a_python_closed_to_learners_is_refused(tmp_path):
    python = tmp_path / "closed" / "python"
    python.parent.mkdir()
    python.write_text("")
    python.chmod(0o755)
    python.parent.chmod(stat.S_IRWXU)
    with pytest.raises(SettingError, match="/closed is closed"):
        check_own_accounts(Settings(group="root", python=str(python)))
    check_own_accounts(Settings(group="root", python="/bin/sh"))


def test_a_group_that_is_not_there_is_refused():
    with pytest.raises(SettingError, match="groupadd no-such-group"):
        check_own_accounts(Settings(group="no-such-group", python="/bin/sh"))


def test_defaults_are_a_private_try_out():
    settings = read({"HUB_PASSWORD": "12345678"}, is_root=False)
    assert settings.on_loopback
    assert settings.accounts == "one"
    assert settings.python == sys.executable


def test_the_readme_lists_every_setting_and_no_other():
    text = (Path(__file__).resolve().parents[2] / "hub/README.md").read_text()
    listed = set(re.findall(r"`HUB_([A-Z_]+)[`=]", text)) | set(re.findall(r"HUB_([A-Z_]+)=", text))
    assert listed == {field.name.upper() for field in fields(Settings)}
