"""The form in which a learner chooses GPUs, and what it says when there are too few."""

import re

import pytest
from running_hub import wait_until

REFUSAL = re.compile(r"<p[^>]*>(?:Error: )?(You asked[^<]*)</p>")


def proposed(page):
    """The GPU count that the form ``page`` has chosen already."""
    return int(re.search(r'value="(\d+)" selected', page)[1])


def form(hub, user):
    return hub.login(user).get(f"{hub.url}/hub/spawn", timeout=30).text


def test_whoever_just_presses_start_leaves_the_last_gpu(empty_hub):
    """One after another, as the form proposes: 2 and 1 of four, and the last stays free."""
    hub = empty_hub
    for user, count in {"ada": 2, "grace": 1, "lin": 0}.items():
        page = form(hub, user)
        assert proposed(page) == count
        assert "With 0 GPUs" in page
        hub.start_server(user, count)
    assert "1 of 4 GPUs is free now: ada has held 2 for " in form(hub, "mei")


@pytest.mark.parametrize("hub_restarts", [False, True])
def test_a_refusal_names_who_holds_the_gpus_and_since_when(empty_hub, hub_restarts):
    hub = empty_hub
    hub.start_server("ada", 3)
    if hub_restarts:
        hub.end(how=9)
        hub.start()
    session = hub.login("grace")
    answer = hub.choose(session, 2)  # the form again; on a busy machine the page that waits

    def data():
        return REFUSAL.search(answer.text) or REFUSAL.search(
            session.get(answer.url, timeout=30).text
        )

    assert re.fullmatch(
        r"You asked for 2 GPUs; 1 of 4 GPUs is free now: ada has held 3 for .* minutes?\."
        r" Choose fewer, or wait until a server stops\.",
        wait_until(data, 60, "the refusal is told")[1],
    )
