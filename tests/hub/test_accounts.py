"""A Unix account that cannot be made is a refusal in words, which the learner reads."""

import accounts
import pytest
from gpu_slots import Refused

NEW = "d2lmgpu-nobody"  # no account of this machine


@pytest.mark.parametrize("reason", ["useradd: cannot create\n directory: disk full", ""])
def test_the_reason_of_useradd_is_passed_on(monkeypatch, tmp_path, reason):
    useradd = tmp_path / "useradd"
    useradd.write_text(f"#!/bin/sh\nprintf '%s' '{reason}' >&2\nexit 12\n")
    useradd.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(Refused) as refusal:
        accounts.ensure(NEW, "learners", create=True)
    text = "useradd: cannot create directory: disk full" if reason else "useradd gave no reason"
    words = f"No account could be made for {NEW} ({text}): tell your instructor."
    assert refusal.value.message == words
    assert (refusal.value.status_code, refusal.value.reason) == (503, "no-account")
