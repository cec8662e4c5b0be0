"""Cookies, redirects and REST options: a browser under TLS, and a learner with a token."""

import subprocess
from urllib.parse import quote, urljoin, urlsplit

import pytest
import requests
from running_hub import PASSWORD, RunningHub


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A hub that speaks TLS, with a certificate of its own."""
    folder = tmp_path_factory.mktemp("hub")
    key, certificate = folder / "key.pem", folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        settings = {"HUB_TLS_KEY": str(key), "HUB_TLS_CERT": str(certificate)}
        running = RunningHub(folder, without_lab=True, HUB_ACCOUNTS="one", **settings)
        running.url = running.url.replace("http:", "https:")
        with running:
            running.set_gpus("GPU-a")
            yield running


@pytest.fixture(scope="module")
def ada(hub):
    session = hub.login("ada")
    hub.start_server("ada")
    session.get(f"{hub.url}/user/ada/files/none", timeout=60)  # by way of the hub's login
    assert session.get(f"{hub.url}/user/ada/api/contents", timeout=60).ok
    return session


def test_cookies_travel_by_tls_alone_and_no_script_reads_them(hub, ada):
    assert len({cookie.name for cookie in ada.cookies}) >= 3
    for cookie in ada.cookies:
        assert cookie.secure and cookie.get_nonstandard_attr("SameSite") == "Lax", (
            cookie.name,
            cookie.path,
        )
        if cookie.name != "_xsrf":  # which a page's own script sends along
            assert cookie.has_nonstandard_attr("HttpOnly"), cookie
    home = ada.get(f"{hub.url}/hub/home", timeout=30)
    assert home.headers["Strict-Transport-Security"].startswith("max-age=31536000")


PLACES = [
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example/",
    "\t//evil.example",
    "https://evil.example/",
    "https:evil.example",
    "javascript:alert(1)",
    "http://127.0.0.1@evil.example/hub/",
    "/%09/evil.example",
    "/hub//evil.example",
    "/hub/../..//evil.example",
    "//127.0.0.1.evil.example/hub/home",
    "data:text/html,x",
]


@pytest.mark.parametrize("place", PLACES)
def test_where_a_login_leads_stays_on_the_hub(hub, place):
    session = requests.Session()
    page = session.get(f"{hub.url}/hub/login", timeout=30)
    xsrf = session.cookies.get("_xsrf", path="/hub/")
    form = {"username": "lin", "password": PASSWORD, "_xsrf": xsrf}
    address = f"{hub.url}/hub/login?next={quote(place, safe='')}"
    assert page.ok and xsrf
    answer = session.post(address, data=form, timeout=60, allow_redirects=False)
    assert answer.status_code == 302, answer.text
    # A browser takes a backslash for a slash, and drops tabs and line ends.
    location = answer.headers["Location"].replace("\\", "/").replace("\t", "")
    leads_to = urlsplit(urljoin(f"{hub.url}/hub/login", location))
    assert f"{leads_to.scheme}://{leads_to.netloc}" == hub.url, location


@pytest.mark.parametrize(
    "method, path, options",
    [
        ("POST", "users/grace/server", {}),
        ("DELETE", "users/grace/server", None),
        ("POST", "users/ada/servers/second", {}),
        ("POST", "users/grace/servers/second", {}),
        ("POST", "users/grace/tokens", {}),
        ("POST", "users/ada/tokens", {"scopes": ["admin:users"]}),
        ("POST", "users/ada/tokens", {"roles": ["admin"]}),
        ("PATCH", "users/ada", {"admin": True}),
        ("PATCH", "users/grace", {"name": "ada2"}),
        ("POST", "users/mallory", {"admin": True}),
        ("POST", "users/grace/activity", {"last_activity": "2030-01-01T00:00:00Z"}),
        ("POST", "users/grace/shared", {}),
        ("POST", "shares/grace/", {"user": "ada"}),
        ("POST", "share-codes/grace/", {}),
        ("POST", "shares/ada/", {"user": "grace"}),
        ("POST", "groups/learners", {}),
        ("POST", "groups/learners/properties", {"gpus": 4}),
        ("POST", "proxy", {}),
        ("PATCH", "proxy", {"ip": "127.0.0.1"}),
        ("POST", "shutdown", {"servers": True}),
        ("POST", "services/own", {"command": ["id"]}),
    ],
)
def test_a_learners_token_is_good_for_the_learners_own_server_alone(
    hub, ada, method, path, options
):
    hub.add("grace")
    before = hub.servers()
    headers = {"Authorization": f"token {hub.user_token('ada')}"}
    url = f"{hub.url}/hub/api/{path}"
    answer = requests.request(method, url, json=options, headers=headers, timeout=60)
    assert answer.status_code in (400, 403, 404, 405), (answer.status_code, answer.text)
    assert hub.servers().keys() == before.keys()
    assert [user["name"] for user in hub.api("GET", "users").json() if user["admin"]] == []


@pytest.mark.parametrize(
    "options",
    [
        {"cmd": ["id"]},
        {"gpus": 0, "env": {"LD_PRELOAD": "/tmp/x.so"}},
        {"port": 1},
        {"args": []},
        {"gpus": 0, "mem_limit": 0},
        {"notebook_dir": "/"},
        {"gpus": [1]},
        {"gpus": 1e9},
        {"gpus": None},
        {"gpus": {"$gt": 0}},
        "gpus",
        7,
    ],
)
def test_start_options_by_rest_are_gpus_and_nothing_else(hub, options):
    hub.add("mei")
    headers = {"Authorization": f"token {hub.user_token('mei')}"}
    url = f"{hub.url}/hub/api/users/mei/server"
    answer = requests.post(url, json=options, headers=headers, timeout=60)
    assert answer.status_code == 400, answer.text
    assert "mei" not in hub.servers()
