"""Learners under Unix accounts of their own: files, environment and processes are kept apart.

Makes real accounts on this machine and removes them again; takes root.
"""

import grp
import pwd
import subprocess
from pathlib import Path

import pytest
from running_hub import RunningHub

OWN_ACCOUNTS = pytestmark = pytest.mark.needs("root", "useradd")
GROUP = "d2lmgpu-test"
ADA, GRACE, MEI = "d2lmgpu-ada", "d2lmgpu-grace", "d2lmgpu-mei"


@pytest.fixture(scope="module")
def hub(tmp_path_factory, python):
    subprocess.run(["groupadd", GROUP], check=True)
    try:
        with RunningHub(
            tmp_path_factory.mktemp("hub"),
            without_lab=True,
            HUB_AUTH="null",  # nobody logs in here: the tests ask by REST
            HUB_USERS=ADA,
            HUB_ACCOUNTS="own",
            HUB_CREATE_ACCOUNTS="1",
            HUB_GROUP=GROUP,
            HUB_PYTHON=python,
        ) as running:
            running.set_gpus("GPU-a", "GPU-b")
            yield running
    finally:
        for name in (ADA, GRACE, MEI):
            subprocess.run(["userdel", "--remove", name], capture_output=True)
        subprocess.run(["groupdel", GROUP], check=True)


def as_user(name, command):
    """Run ``command`` in a shell as ``name``, as that learner's own kernel could."""
    account = pwd.getpwnam(name)
    return subprocess.run(
        ["sh", "-c", command],
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[grp.getgrnam(GROUP).gr_gid],
        capture_output=True,
        text=True,
    )


def test_one_learner_reads_nothing_of_another(hub):
    for learner in (ADA, GRACE):
        assert len(hub.start_server(learner, 1)) == 1
        assert hub.process_of(learner).username() == learner
    home = Path(pwd.getpwnam(ADA).pw_dir)
    notes = home / "notes.txt"
    assert as_user(ADA, f"echo mine > {notes}").returncode == 0
    pid, runtime = hub.process_of(ADA).pid, hub.runtime_folder(ADA)
    attempts = [f"cat {notes}", f"ls {home}", f"cat /proc/{pid}/environ", f"kill -9 {pid}"]
    for attempt in [*attempts, f"ls {runtime}"]:
        assert as_user(ADA, attempt.replace("kill -9", "kill -0")).returncode == 0, attempt
        assert as_user(GRACE, attempt).returncode != 0, attempt
    state = hub.folder / "state"
    assert as_user(GRACE, f"cat {state}/jupyterhub.sqlite {state}/cookie_secret").returncode != 0


def test_the_hub_updates_without_ending_servers(hub):
    if ADA not in hub.servers():
        hub.start_server(ADA, 1)
    server, leases = hub.process_of(ADA), hub.leases()
    hub.end()  # as a service is stopped
    assert server.is_running()
    hub.start()
    assert hub.leases() == leases
    assert hub.process_of(ADA) == server


@pytest.mark.parametrize("name", ["root", "daemon"])
def test_a_name_from_outside_never_becomes_an_administrator(hub, name):
    answer = hub.ask(name, {})
    assert answer.status_code == 403
    assert f"not in the group {GROUP}" in answer.json()["message"]


def test_a_name_that_unix_would_not_have_is_refused(hub):
    answer = hub.ask("mei;reboot", {})
    assert answer.status_code == 403
    assert "cannot be the name of a Unix account" in answer.json()["message"]


def test_without_permission_no_account_is_made():
    import accounts
    from gpu_slots import Refused

    with pytest.raises(Refused, match="has no account") as refusal:
        accounts.ensure(MEI, GROUP, create=False)
    assert refusal.value.status_code == 403
