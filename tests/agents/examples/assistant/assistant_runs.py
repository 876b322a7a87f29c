"""Runs of the assistant on a scripted model."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group

from checkpoints.models import Run
from tests.factories.driven_runs import advance_to_rest, make_run

from .endpoint import Endpoint, Reply, Script

DONE = Reply("All done.")
WRITE = ("write_file", {"path": "notes.md", "content": "one\ntwo\n"})


def start(endpoint: Endpoint, *script: Script, task: str = "Tidy the desk.", team: Group | None = None) -> Run:
    endpoint.script = list(script)
    return make_run("assistant", team=team, task=task)


def begun(endpoint: Endpoint, *script: Script, **more: Any) -> Run:
    """The same, taken on until it waits or has ended."""
    return advance_to_rest(start(endpoint, *script, **more))


def calling(*calls: tuple[str, Any], text: str = "") -> Reply:
    return Reply(text, calls)
