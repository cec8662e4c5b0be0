"""A link on a stranger's page brings the course, and nothing else, into a learner's server."""

import subprocess
import sys
from urllib.parse import urlencode

import course
import pytest
from learner import ADA, lab_hub, log_in, publish, write_notebook
from test_security import CROSS_SITE

STARTUP = ".ipython/profile_default/startup"


def repository(folder):
    """The address of a repository whose one file is code that says that it ran."""
    folder.mkdir(parents=True)
    (folder / "00.py").write_text("import pathlib; pathlib.Path.home().joinpath('RAN').touch()\n")
    publish(folder)
    git = ["git", "-c", "user.name=C", "-c", "user.email=c@example.org", "-C", folder]
    subprocess.run([*git, "branch", "other"], check=True)
    subprocess.run([*git, "update-ref", "refs/heads/--upload-pack=touch", "main"], check=True)
    return folder.as_uri()


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A hub that brings one repository beside the course; ``evil`` is a third."""
    folder = tmp_path_factory.mktemp("hub")
    more, evil = (repository(folder / name) for name in ("more", "evil"))
    with lab_hub(folder, HUB_ACCOUNTS="one", HUB_REPOSITORIES=f"{more}#main") as running:
        running.more, running.evil = more, evil
        running.start_server(ADA)
        running.home = folder / "state/home" / ADA
        yield running


@pytest.fixture(scope="module")
def ada(hub):
    """Her browser, logged in at her server."""
    session = hub.login(ADA)
    assert session.get(f"{hub.url}/user/{ADA}/lab", timeout=60).status_code == 200
    return session


def files(home):
    return {path for path in home.rglob("*") if ".cache" not in path.parts}


def follow(hub, ada, query):
    """What the page of a link answers to Ada's browser, and what brings its files to her token."""
    query = query if isinstance(query, str) else urlencode(query)
    page = ada.get(f"{hub.url}/hub/user-redirect/git-pull?{query}", headers=CROSS_SITE, timeout=60)
    return page, hub.ask_server(ADA, "GET", f"git-pull/api?{query}")


ATTACKS = {
    "another repository": lambda more, evil: {"repo": evil, "branch": "main"},
    "another one, where a kernel runs it": lambda more, evil: {
        "repo": evil,
        "branch": "main",
        "targetpath": STARTUP,
        "urlpath": "lab",
    },
    "where a kernel runs it": lambda more, evil: {
        "repo": more,
        "branch": "main",
        "targetpath": STARTUP,
    },
    "in the old spelling": lambda more, evil: {
        "repo": more,
        "branch": "main",
        "targetPath": STARTUP,
    },
    "outside of the home": lambda more, evil: {
        "repo": more,
        "branch": "main",
        "targetpath": "../../../outside",
    },
    "by its whole path": lambda more, evil: {
        "repo": more,
        "branch": "main",
        "targetpath": "/tmp/d2lmgpu-outside",
    },
    "the first of two": lambda more, evil: f"repo={evil}&repo={more}&branch=main",
    "the last of two": lambda more, evil: f"repo={more}&repo={evil}&branch=main",
    "the last of two folders": lambda more, evil: (
        f"repo={more}&branch=main&targetpath=more&targetpath={STARTUP}"
    ),
    "another branch": lambda more, evil: {"repo": more, "branch": "other"},
    "no branch": lambda more, evil: {"repo": more},
    "an empty branch": lambda more, evil: {"repo": more, "branch": ""},
    "an option as a branch": lambda more, evil: {"repo": more, "branch": "--upload-pack=touch"},
    "a branch by its whole name": lambda more, evil: {"repo": more, "branch": "refs/heads/main"},
    "a branch and a command": lambda more, evil: {"repo": more, "branch": "main;id"},
    "a slash": lambda more, evil: {"repo": more + "/", "branch": "main"},
    ".git": lambda more, evil: {"repo": more + "/.git", "branch": "main"},
    "a way round": lambda more, evil: {"repo": more + "/../evil", "branch": "main"},
    "capitals": lambda more, evil: {"repo": more.replace("file", "FILE"), "branch": "main"},
    "a host": lambda more, evil: {"repo": more.replace("//", "//localhost"), "branch": "main"},
    "credentials": lambda more, evil: {
        "repo": more.replace("//", "//ada:secret@localhost"),
        "branch": "main",
    },
    "without a scheme": lambda more, evil: {"repo": more[len("file://") :], "branch": "main"},
    "a program": lambda more, evil: {"repo": "ext::sh -c 'touch RAN'", "branch": "main"},
    "an option": lambda more, evil: {"repo": "--upload-pack=touch RAN", "branch": "main"},
    "the list's own spelling": lambda more, evil: {"repo": more + "#main", "branch": ""},
    "none": lambda more, evil: {"urlpath": "lab"},
    "moved away": lambda more, evil: {"repo": more, "branch": "main", "backup": "true"},
    "all of its history": lambda more, evil: {"repo": more, "branch": "main", "depth": "0"},
    "a page of its own": lambda more, evil: {"repo": more, "branch": "main", "subPath": "00.py"},
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_link_that_brings_anything_else_is_refused(hub, ada, attack):
    before = files(hub.home)
    for answer in follow(hub, ada, ATTACKS[attack](hub.more, hub.evil)):
        assert answer.status_code == 403, answer.url
        assert "This launch link was not followed" in answer.text
    assert files(hub.home) == before


@pytest.mark.parametrize("path", ["git-sync", "interact", "git-pull/api/", "git-pull/"])
def test_no_other_address_of_nbgitpuller_brings_it(hub, ada, path):
    before = files(hub.home)
    answer = ada.get(f"{hub.url}/user/{ADA}/{path}?repo={hub.evil}&branch=main", timeout=60)
    assert answer.status_code in (403, 404), answer.url
    assert files(hub.home) == before


def test_the_links_that_are_allowed_bring_theirs(hub, ada):
    published = course.read()
    page, _ = follow(hub, ada, {"repo": hub.more, "branch": "main", "urlpath": "lab/tree/more"})
    assert page.status_code == 200 and "Synchronizing" in page.text
    assert (hub.home / "more/00.py").exists()
    page = ada.get(hub.url + published.start, timeout=60)
    assert page.status_code == 200 and published.url in page.text


@pytest.mark.parametrize(
    "place", ["//evil.example", "https://evil.example/", "javascript:alert(1)", "../../..//evil"]
)
def test_where_a_link_leads_stays_on_the_hub(hub, ada, context, place):
    page = in_browser(hub, ada, context)
    query = urlencode({"repo": hub.more, "branch": "main", "urlpath": place})
    page.goto(f"{hub.url}/user/{ADA}/git-pull?{query}")
    page.wait_for_url(lambda url: "git-pull" not in url)
    assert page.url.startswith(f"{hub.url}/"), page.url


def in_browser(hub, ada, context):
    """A page of Chromium with the cookies of Ada's browser."""
    context.add_cookies(
        [
            {"name": c.name, "value": c.value, "domain": "127.0.0.1", "path": c.path}
            for c in ada.cookies
        ]
    )
    return context.new_page()


@pytest.mark.parametrize(
    "query",
    [
        "repo={more}&branch=main&urlpath=%3Cimg+src%3Dx+onerror%3Ddocument.title%3D1%3E",
        "repo=%3Cimg+src%3Dx+onerror%3Ddocument.title%3D1%3E&branch=main",
        "repo={more}&branch=main&%3Cimg+src%3Dx+onerror%3Ddocument.title%3D1%3E=1",
    ],
)
def test_no_word_of_a_link_is_a_script_in_the_learners_page(hub, ada, query):
    """It would be as mighty as the learner: it could start a kernel and run anything."""
    page, _ = follow(hub, ada, query.format(more=hub.more))
    assert "onerror" in page.text and "<img src=x" not in page.text


def test_a_click_on_another_site_runs_nothing(hub, context, tmp_path):
    """As a learner meets it: a page elsewhere, a click, the login, and the next kernel."""
    query = urlencode({"repo": hub.evil, "branch": "main", "targetpath": STARTUP, "urlpath": "lab"})
    link = f"{hub.url}/hub/user-redirect/git-pull?{query}"
    (tmp_path / "index.html").write_text(f'<a href="{link}">Exercises</a>')
    command = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1"]
    command += ["--directory", tmp_path, "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as site:
        port = site.stdout.readline().split("port ")[1].split()[0]
        page = context.new_page()
        page.goto(f"http://localhost:{port}/")  # to a browser another site than 127.0.0.1
        page.click("a")
        log_in(page, hub)
        page.get_by_text("This launch link was not followed").first.wait_for()
        site.terminate()
    assert hub.start_kernel(ADA).run("print('runs')") == "runs\n"
    assert not (hub.home / STARTUP / "00.py").exists() and not (hub.home / "RAN").exists()


def test_a_link_runs_no_notebook(hub, ada):
    """Voilà, which the course uses elsewhere, runs a notebook for whoever asks for its page."""
    write_notebook(hub.home / "own.ipynb", ["open('RAN', 'w').close()"])
    for path in ("voila/render/own.ipynb", "voila", "voila/render/more/00.py"):
        answer = ada.get(f"{hub.url}/user/{ADA}/{path}", headers=CROSS_SITE, timeout=120)
        assert answer.status_code == 404, path
    assert not (hub.home / "RAN").exists()
