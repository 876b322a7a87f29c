"""A page's live feed starts before what the page shows, so that nothing falls between the two."""

from __future__ import annotations

import re
from typing import Any
from unittest import mock

import pytest

from approvals.presentation import topbar
from checkpoints.actors import SYSTEM
from checkpoints.events import event_log
from checkpoints.events.commit_order import Cursor
from checkpoints.models import Event
from tests.factories import ann, make_gate, make_team
from tests.harness.signed_in_clients import signed_in


@pytest.mark.parametrize("page", ["/", "/gates/{gate}/", "/runs/", "/runs/{run}/"])
def test_what_happens_after_a_page_was_read_and_before_it_is_written_is_heard_of(page: str) -> None:
    """A run that ended in that moment was shown as running until the page was loaded anew."""
    gate = make_gate(team=make_team())
    frame = topbar.frame

    def late(request: Any) -> dict[str, Any]:
        event_log.record("run.completed", subject=f"run:{gate.run_id}", run=gate.run, by=SYSTEM)
        return frame(request)

    with mock.patch.object(topbar, "frame", late):
        html = signed_in(ann(gate.run.team)).get(page.format(gate=gate.pk, run=gate.run_id)).content.decode()
    [started] = re.findall(r'data-cursor="([^"]*)"', html)
    missed = Event.objects.filter(kind="run.completed", run_id=gate.run_id).latest("pk")
    assert Cursor.parse(started) < Cursor.from_event(missed)


def test_a_fragment_starts_no_feed() -> None:
    gate = make_gate(team=make_team())
    client = signed_in(ann(gate.run.team))
    with mock.patch("checkpoints.events.commit_order.newest_cursor", side_effect=AssertionError("was asked")):
        assert client.get(f"/runs/{gate.run_id}/", headers={"HX-Request": "true"}).status_code == 200
