"""A server that ends while it starts: its GPUs are free at once, and its learner reads why."""

import json
import os
import socket

import psutil
import pytest
from learner import choose as choose_gpus
from learner import log_in
from running_hub import RunningHub, wait_until
from soaking import sample
from spawner import is_listening

FOUR = ["GPU-a", "GPU-b", "GPU-c", "GPU-d"]
# Before each start: the command that the test has written down for it, and the port.
CHOOSE = """
import json, pathlib
usual = list(c.Spawner.cmd)

def choose(spawner):
    chosen = json.loads(pathlib.Path({path!r}).read_text())
    words = {{"KEEPER": usual[:2], "SERVER": usual}}
    spawner.cmd = sum((words.get(word, [word]) for word in chosen["command"]), [])
    spawner.port = chosen["port"]

c.Spawner.pre_spawn_hook = choose

async def clean_up(spawner):  # takes until the test has written into the pipe, if there is one
    import asyncio
    pipe = pathlib.Path({pipe!r})
    if pipe.exists():
        await asyncio.to_thread(pipe.read_text)

c.Spawner.post_stop_hook = clean_up
"""
# How a server ends: its command, and what its learner reads.
ENDS = {
    "at once": (["/bin/false"], "(exit code 1). It gave no reason."),
    "with an option that is none": (["SERVER", "--ServerApp.port=many"], "exit code 1"),
    "by an extension": (
        ["SERVER", "--ServerApp.jpserver_extensions=no_such_thing=True"],
        "No module named 'no_such_thing'",
    ),
    "with its keeper": (["sh", "-c", "kill -SEGV $$"], "(segmentation fault). It gave no"),
}


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub")
    more = CHOOSE.format(path=str(folder / "chosen"), pipe=str(folder / "clean-up"))
    with RunningHub(folder, more, without_lab=True, HUB_ACCOUNTS="one") as running:
        running.set_gpus(*FOUR)
        yield running


def choose(hub, command=("SERVER",), port=0):
    (hub.folder / "chosen").write_text(json.dumps({"command": command, "port": port}))


def assert_all_is_free(hub):
    wait_until(lambda: not hub.leases(), 10, "the lease has ended")
    choose(hub)
    assert hub.start_server("grace", 4) == FOUR
    hub.stop_server("grace")


@pytest.mark.parametrize("how", sample({"by an extension", "with its keeper"}, ENDS))
def test_its_gpus_are_free_and_the_reason_is_told(hub, how):
    command, words = ENDS[how]
    choose(hub, command)
    answer = hub.ask("ada", {"gpus": 4})
    assert answer.status_code == 500, answer.text
    assert "Your server ended while it started" in answer.json()["message"]
    assert words in answer.json()["message"]
    assert_all_is_free(hub)


@pytest.mark.parametrize("signal, words", [("KILL", "killed"), ("SEGV", "segmentation fault")])
def test_the_signal_and_the_last_words_of_the_server_itself(hub, tmp_path, signal, words):
    """Below the keeper, which hands both on."""
    server = tmp_path / "server.sh"
    server.write_text(f"seq 100000 >&2; echo the last straw >&2; kill -{signal} $$\n")
    choose(hub, ["KEEPER", "sh", str(server)])
    answer = hub.ask("ada", {"gpus": 4})
    assert answer.status_code == 500, answer.text
    assert f"({words}). It said at the end: 99999 100000 the last straw" in answer.json()["message"]
    assert_all_is_free(hub)


@pytest.mark.parametrize("kind", sample(1, ["is no program", "is a folder", "is not there"]))
def test_a_command_that_cannot_be_run_is_named(hub, tmp_path, kind):
    command = tmp_path / "server"
    if kind == "is a folder":
        command.mkdir()
    elif kind == "is no program":
        command.write_text("words")
    choose(hub, [str(command)])
    answer = hub.ask("ada", {"gpus": 4})
    assert answer.status_code == 500, answer.text
    message = answer.json()["message"]
    assert "Your server could not be started: " in message and str(command) in message
    assert_all_is_free(hub)


def test_of_a_server_that_says_much_in_a_line_a_part_is_told(hub):
    choose(hub, ["KEEPER", "sh", "-c", "head -c 9999999 /dev/zero | tr '\\0' x >&2; exit 9"])
    message = hub.ask("ada", {"gpus": 4}).json()["message"]
    assert "(exit code 9). It said at the end: xxx" in message and len(message) < 1500
    assert_all_is_free(hub)


def test_a_browser_that_waits_is_told_too(hub, tmp_path):
    """It ends long after the hub has answered that it is starting."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    choose(hub, ["KEEPER", "sh", "-c", f"cat {pipe} >&2; exit 3"])
    session = hub.login("ada")
    answer = hub.choose(session, 4)
    assert answer.url.startswith(f"{hub.url}/hub/spawn-pending/ada")
    assert hub.leases() == {"ada": FOUR}
    pipe.write_text("<b>No space</b> left on device\n")
    wait_until(lambda: "ada" not in hub.servers(), 10, "the start has failed")
    page = session.get(answer.url, timeout=30).text
    assert "ended while it started (exit code 3)" in page
    assert "&lt;b&gt;No space&lt;/b&gt; left on device" in page and "<b>No space" not in page
    assert_all_is_free(hub)


def test_a_browser_is_told_of_an_end_before_its_page_listens(hub, tmp_path, context):
    """While the hub still cleans up it refuses to tell of a start: the page must ask again."""
    pipe, cleaning = tmp_path / "said", hub.folder / "clean-up"
    os.mkfifo(pipe)
    choose(hub, ["KEEPER", "sh", "-c", f"cat {pipe} >&2; exit 3"])
    page = context.new_page()

    def end_it(route):
        os.mkfifo(cleaning)
        pipe.write_text("No space left on device\n")
        held.append(cleaning.open("w"))  # when the hub has begun to clean up
        cleaning.unlink()
        route.continue_()

    held = []
    page.goto(f"{hub.url}/hub/spawn")
    log_in(page, hub)
    page.route("**/server/progress*", end_it, times=1)
    with page.expect_response("**/server/progress*") as answer:
        choose_gpus(page, gpus=4)
    assert answer.value.status == 400
    held.pop().close()
    page.get_by_role("button", name="Relaunch").wait_for()
    assert "ended while it started (exit code 3)" in page.locator("body").text_content()
    assert_all_is_free(hub)


def test_a_browser_whose_page_listens_shows_the_end(hub, tmp_path, context):
    pipe = tmp_path / "said"
    os.mkfifo(pipe)
    choose(hub, ["KEEPER", "sh", "-c", f"cat {pipe} >&2; exit 3"])
    page = context.new_page()
    page.goto(f"{hub.url}/hub/spawn")
    log_in(page, hub)
    with page.expect_response("**/server/progress*"):
        choose_gpus(page, gpus=4)
    pipe.write_text("No space left on device\n")
    page.get_by_role("button", name="Relaunch").wait_for()
    assert "ended while it started (exit code 3)" in page.locator("body").text_content()
    assert_all_is_free(hub)


def test_a_port_that_somebody_else_has_is_no_server(hub):
    """Else the hub would hand a learner's browser to whoever took the port first."""
    with socket.create_server(("127.0.0.1", 0)) as theirs:
        choose(hub, port=theirs.getsockname()[1])
        answer = hub.ask("ada", {"gpus": 4})
    assert answer.status_code == 500, answer.text
    assert "is not available" in answer.json()["message"]
    assert_all_is_free(hub)


def test_a_server_that_is_just_ending_does_not_listen(monkeypatch):
    """Its files are root's by then: a hub of another account may not look at them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert is_listening(os.getpid(), port)

        def denied(process, kind):
            raise psutil.AccessDenied(process.pid)

        monkeypatch.setattr(psutil.Process, "net_connections", denied)
        assert not is_listening(os.getpid(), port)
