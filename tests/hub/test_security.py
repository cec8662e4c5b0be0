"""What a stranger, another learner and another site get from the hub: nothing."""

import re

import pytest
import requests
import websocket
from running_hub import PASSWORD, RunningHub, wait_until

EVIL = "https://evil.example"
# What a browser says of a request that another site made it send.
CROSS_SITE = {"Origin": EVIL, "Referer": f"{EVIL}/", "Sec-Fetch-Site": "cross-site"}


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A hub with four GPUs and with JupyterLab, as learners meet it."""
    with RunningHub(tmp_path_factory.mktemp("hub"), HUB_ACCOUNTS="one") as running:
        running.set_gpus("GPU-a", "GPU-b", "GPU-c", "GPU-d")
        yield running


@pytest.fixture(scope="module")
def ada(hub):
    """Ada's browser, after login, the GPU form and a look into her server."""
    session = hub.login("ada")
    hub.choose(session, 2)
    wait_until(lambda: hub.servers().get("ada", {}).get("ready"), 120, "ada's server")
    answer = session.get(f"{hub.url}/user/ada/lab", timeout=60)
    assert answer.status_code == 200
    session.seen = [step.url for step in [*answer.history, answer]]
    return session


@pytest.mark.parametrize(
    "path",
    [
        *("hub/home", "hub/spawn", "hub/admin", "hub/token", "hub/user-redirect/git-pull?repo=x"),
        *("user/ada/lab", "user/ada/api/contents", "user/ada/git-pull?repo=x", "user/ada/files/x"),
    ],
)
def test_no_page_without_login(hub, ada, path):
    answer = requests.get(f"{hub.url}/{path}", timeout=30)
    assert answer.status_code == 403 or answer.url.startswith(f"{hub.url}/hub/login"), answer.url


@pytest.mark.parametrize("path", ["users", "users/ada", "proxy", "services", "groups"])
def test_no_api_without_a_token(hub, path):
    assert requests.get(f"{hub.url}/hub/api/{path}", timeout=30).status_code == 403


def test_the_form_asked_for_two_gpus(hub, ada):
    assert len(hub.leases()["ada"]) == 2


def test_a_learner_cannot_reach_anothers_server(hub, ada):
    grace = hub.login("grace")
    for path in ["user/ada/api/contents", "user/ada/api/kernels", "user/ada/api/terminals"]:
        answer = grace.get(f"{hub.url}/{path}", timeout=30)
        assert answer.status_code == 403, path
        assert '"content"' not in answer.text
    for path in ["users/ada", "users/ada/tokens", "users"]:
        assert grace.get(f"{hub.url}/hub/api/{path}", timeout=30).status_code in (403, 404), path
    with_token = {"Authorization": f"token {hub.user_token('grace')}"}
    answer = requests.get(f"{hub.url}/user/ada/api/contents", headers=with_token, timeout=30)
    assert answer.status_code == 403
    answer = requests.delete(f"{hub.url}/hub/api/users/ada/server", headers=with_token, timeout=30)
    assert answer.status_code in (403, 404)


def test_cross_site_requests_are_refused(hub, ada):
    def send(method, path, **arguments):
        return ada.request(
            method, f"{hub.url}/{path}", headers=CROSS_SITE, timeout=30, **arguments
        ).status_code

    assert send("POST", "hub/api/users/ada/tokens", json={}) == 403
    assert send("DELETE", "hub/api/users/ada/server") == 403
    assert send("POST", "hub/spawn", data={"gpus": "1"}) == 403
    assert send("POST", "user/ada/api/contents", json={"type": "notebook"}) == 403
    assert send("POST", "user/ada/api/kernels", json={}) == 403
    assert send("GET", "user/ada/api/contents") in (403, 404)
    # And the same browser on the hub's own page may: the refusals are of the site.
    assert ada.get(f"{hub.url}/user/ada/api/contents", timeout=30).status_code == 200


def test_another_site_cannot_type_into_a_terminal(hub, ada):
    url = f"{hub.url}/user/ada/api/terminals"
    token = {"Authorization": f"token {hub.user_token('ada')}"}
    name = requests.post(url, headers=token, timeout=30).json()["name"]
    address = f"{hub.url}/user/ada/terminals/websocket/{name}".replace("http:", "ws:")
    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in ada.cookies)
    with pytest.raises(websocket.WebSocketBadStatusException) as refusal:
        websocket.create_connection(address, cookie=cookies, origin=EVIL, timeout=30)
    assert refusal.value.status_code == 403
    # The hub's own page may, with the token that only such a page can read.
    xsrf = ada.cookies.get("_xsrf", path="/user/ada/")
    websocket.create_connection(f"{address}?_xsrf={xsrf}", cookie=cookies, timeout=30).close()


def test_a_link_cannot_start_a_server(hub):
    """Without our refusal JupyterHub starts one: a link could take GPUs in the learner's name."""
    lin = hub.login("lin")
    page = lin.get(f"{hub.url}/hub/spawn?gpus=1", headers=CROSS_SITE, timeout=30)
    assert "Choose the GPUs here" in page.text
    assert "How many GPUs?" in page.text
    assert "lin" not in hub.servers()


def test_a_token_in_an_address_is_not_accepted(hub, ada):
    token = hub.user_token("ada")
    for path in ["hub/api/user", "user/ada/api/contents"]:
        answer = requests.get(f"{hub.url}/{path}?token={token}", timeout=30)
        assert answer.status_code == 403 or "/hub/login" in answer.url, path
        headers = {"Authorization": f"token {token}"}
        assert requests.get(f"{hub.url}/{path}", headers=headers, timeout=30).ok, path


def test_no_secret_in_logs_or_addresses(hub, ada):
    log = hub.log()
    environ = hub.process_of("ada").environ()
    secrets = [PASSWORD, hub.token, environ["JUPYTERHUB_API_TOKEN"]]
    secrets += [cookie.value for cookie in ada.cookies]
    codes = [match[1] for url in ada.seen if (match := re.search(r"[?&]code=([^&]+)", url))]
    assert codes, "the login to the server went through an OAuth code"
    for secret in secrets + codes:
        assert secret not in log
    for url in ada.seen:
        assert "token" not in url
        assert not any(secret in url for secret in secrets)


def test_the_servers_environment_has_nothing_of_the_hubs(hub, ada):
    environ = hub.process_of("ada").environ()
    assert not [name for name in environ if name.startswith(("HUB_", "CONFIGPROXY"))]


def test_the_server_says_what_it_uses(hub, ada):
    usage = ada.get(f"{hub.url}/user/ada/api/metrics/v1", timeout=30).json()
    assert usage["rss"] > 10 * 2**20


def test_headers_as_jupyterhub_recommends(hub, ada):
    pages = [requests.get(f"{hub.url}/hub/login", timeout=30), ada.get(f"{hub.url}/hub/home")]
    for page in pages:
        headers = page.headers
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in headers
    for cookie in ada.cookies:
        if not cookie.name.startswith("_xsrf"):
            assert cookie.has_nonstandard_attr("HttpOnly"), cookie.name


def test_the_state_is_closed_to_others(hub):
    state = hub.folder / "state"
    assert state.stat().st_mode & 0o077 == 0
    assert (state / "cookie_secret").stat().st_mode & 0o077 == 0
