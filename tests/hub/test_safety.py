"""The hub refuses, in words and before it opens a port, what would let in strangers."""

import stat

import pytest
import safety
from jupyterhub.auth import Authenticator, PAMAuthenticator
from safety import SettingError, check_own_accounts
from settings import Settings, read

PUBLIC = {
    "HUB_ADDRESS": "0.0.0.0",
    "HUB_AUTH": "pam",
    "HUB_USERS": "ada grace",
    "HUB_TLS_KEY": __file__,  # any file that can be read
    "HUB_TLS_CERT": __file__,
    "HUB_PYTHON": "/usr/bin/env",
}
OPEN = ["dummy", "shared-password", "jupyterhub.auth.DummyAuthenticator"]
GITHUB = "oauthenticator.github.GitHubOAuthenticator"
NATIVE = "nativeauthenticator.nativeauthenticator.NativeAuthenticator"
LTI13 = "ltiauthenticator.lti13.auth.LTI13Authenticator"


@pytest.fixture(autouse=True)
def a_machine_that_is_set_up(monkeypatch):
    monkeypatch.setattr(safety, "check_own_accounts", lambda settings: None)


def refusal(environ, is_root=True):
    with pytest.raises(SettingError) as error:
        read(environ, is_root)
    return str(error.value)


def install(monkeypatch, path, base=Authenticator):
    """Have the hub find a class of this import path, whatever HUB_AUTH calls it."""
    module, _, name = path.rpartition(".")
    authenticator = type(name, (base,), {"__module__": module})
    monkeypatch.setattr(safety, "authenticator_class", lambda auth: authenticator)


def test_a_safe_public_hub_is_allowed():
    settings = read(PUBLIC, is_root=True)
    assert settings.allowed_users == {"ada", "grace"}
    assert settings.accounts == "own"
    assert not settings.on_loopback
    assert not settings.everybody


@pytest.mark.parametrize("login", OPEN)
@pytest.mark.parametrize("address", ["0.0.0.0", "192.0.2.7", "hub.example.org", "::"])
def test_no_open_login_where_others_can_reach_it(login, address):
    environ = {**PUBLIC, "HUB_AUTH": login, "HUB_PASSWORD": "long enough"}
    assert "anybody be anybody" in refusal({**environ, "HUB_ADDRESS": address})


@pytest.mark.parametrize("login", OPEN)
@pytest.mark.parametrize("is_root", [True, False])
def test_a_try_out_lets_in_everybody_under_one_account(login, is_root):
    settings = read({"HUB_AUTH": login, "HUB_PASSWORD": "long enough"}, is_root)
    assert settings.accounts == "one"
    assert settings.everybody


@pytest.mark.parametrize("login", OPEN)
@pytest.mark.parametrize("users", ["", "ada", "ada grace"])
def test_an_open_login_gives_no_accounts_of_their_own(login, users):
    environ = {"HUB_AUTH": login, "HUB_PASSWORD": "long enough", "HUB_ACCOUNTS": "own"}
    assert "would keep no learners apart" in refusal({**environ, "HUB_USERS": users})


@pytest.mark.parametrize("login", ["pam", "github", "pkg.GitHubOAuthenticator", "lti13"])
@pytest.mark.parametrize("users", ["", " "])
def test_only_an_open_login_lets_in_whom_nobody_has_named(monkeypatch, login, users):
    """On loopback too: the world may come in through a web server before the hub."""
    if login != "pam":
        install(monkeypatch, LTI13 if login == "lti13" else GITHUB)
    assert "who may log in" in refusal({"HUB_AUTH": login, "HUB_USERS": users})


@pytest.mark.parametrize("login", ["github", "local-github", "gitlab", "pkg.GitHubOAuthenticator"])
def test_everybody_with_a_public_account_is_refused(monkeypatch, login):
    install(monkeypatch, GITHUB)
    assert "everybody who has an account" in refusal({"HUB_AUTH": login, "HUB_USERS": "*"})
    assert read({"HUB_AUTH": login, "HUB_USERS": "ada"}, is_root=True).allowed_users == {"ada"}


@pytest.mark.parametrize("path", [NATIVE, LTI13])
def test_all_whom_the_instructor_admits_may_log_in(monkeypatch, path):
    install(monkeypatch, path)
    assert read({**PUBLIC, "HUB_AUTH": path, "HUB_USERS": "*"}, is_root=True).everybody


@pytest.mark.parametrize("login", ["pam", "jupyterhub.auth.PAMAuthenticator"])
def test_all_accounts_of_the_machine_may_log_in(login):
    assert read({**PUBLIC, "HUB_AUTH": login, "HUB_USERS": "*"}, is_root=True).everybody


def test_a_class_that_extends_an_admitted_login_is_one(monkeypatch):
    install(monkeypatch, "course.OurPAMAuthenticator", base=PAMAuthenticator)
    assert read({**PUBLIC, "HUB_USERS": "*"}, is_root=True).everybody


@pytest.mark.parametrize(
    "change, words",
    [
        ({"HUB_ACCOUNTS": "one"}, "an own account"),
        ({"HUB_ACCOUNTS": "some"}, "'own' or 'one'"),
        ({"HUB_TLS_KEY": "", "HUB_TLS_CERT": ""}, "in the clear"),
        ({"HUB_AUTH": "oauth-of-nobody"}, "is not installed"),
        ({"HUB_AUTH": "no.such.module"}, "is not installed"),
        ({"HUB_AUTH": "..", "HUB_USERS": "ada"}, "is not installed"),
        ({"HUB_AUTH": "os.path"}, "'os.path' is not a login; there are "),
        ({"HUB_AUTH": "pathlib.Path"}, "'pathlib.Path' is not a login"),
    ],
)
def test_what_is_unsafe_or_no_login_is_refused(change, words):
    assert words in refusal({**PUBLIC, **change})


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
