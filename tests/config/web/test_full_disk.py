"""A disk without room for an uploaded file: whoever sends one is told to try again, and nothing is decided."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from agents.waits import signals
from approvals.models import Gate
from tests.agents.waits.conftest import own_agents
from tests.approvals.views.test_files import UPLOAD, edit, place, random, sha, with_file
from tests.factories import ann, driven_runs, make_team
from tests.harness.signed_in_clients import signed_in

__all__ = ["own_agents"]


def failing(number: int) -> Any:
    """What fails with this error."""

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("where", ["decisions", "forms", "impacts"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_file_without_room_is_a_503_and_decides_nothing(
    where: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, content = with_file(random(), team=(team := make_team())), random()
    client, form = signed_in(ann(team)), edit(gate, content)
    client.raise_request_exception = False
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", failing(number))
        answer = client.post(f"/gates/{gate.pk}/{where}/", edit(gate, content, change=UPLOAD))
    assert (answer.status_code, answer.headers.get("Retry-After")) == (503, "5")
    assert "disk is full</h1>" in answer.content.decode()
    assert not place(sha(content)).exists()
    assert Gate.objects.get(pk=gate.pk).status == "open"
    assert client.post(f"/gates/{gate.pk}/decisions/", form).status_code == 303


@pytest.mark.parametrize(("number", "status"), [(errno.ENOSPC, 503), (errno.EDQUOT, 503), (errno.EIO, 500)])
def test_a_program_is_told_so_too(number: int, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run = driven_runs.make_run("listener")
    client = signed_in(ann(run.team))
    client.raise_request_exception = False
    monkeypatch.setattr(signals, "send", failing(number))
    body = {"value": None, "key": "k"}
    answer = client.post(f"/api/runs/{run.pk}/signals/go", body, content_type="application/json")
    assert (answer.status_code, answer.headers.get("Retry-After")) == (status, "5" if status == 503 else None)
    assert answer["Content-Type"] == "application/problem+json"
    assert ("The server's disk is full." in answer.json()["detail"]) == (status == 503)
