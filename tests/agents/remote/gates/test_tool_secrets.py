"""What people registered as a tool's secret is hidden wherever the state of a program's run is shown.

It was masked at the gate, and stood in the open on the run's pages and in its API: their veil was the program's plan.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents.errors import RewindRefused
from agents.moves import request, rewind
from approvals.gates import reveal_secret
from approvals.models import Gate
from checkpoints import store
from checkpoints.models import Checkpoint
from tests.agents.remote.gates.test_marks_of_secrets import planned
from tests.agents.remote.outside_program import Program, decide
from tests.approvals.tools.registered_tools import make_tool
from tests.factories import MEMBER, make_user
from tests.harness.signed_in_clients import signed_in

PIN = "482913-never-shown"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"pin": {"type": "string", "writeOnly": True}, "to": {"type": "string"}},
    "additionalProperties": False,
}
PAGES = [
    "/runs/{run}/",
    "/runs/{run}/checkpoints/2/",
    "/runs/{run}/checkpoints/2/value",
    "/runs/{run}/checkpoints/2/value/payment",
    "/runs/{run}/checkpoints/2/value/payment/pin",
    "/runs/{run}/checkpoints/2/edit/",
    "/runs/{run}/checkpoints/2/fork/",
    "/runs/{run}/checkpoints/2/?against=1",
    "/api/runs/{run}",
    "/api/runs/{run}/checkpoints/2",
    "/api/runs/{run}/checkpoints/1/diff?to=2",
]


@pytest.fixture
def gate() -> Gate:
    program = Program()
    make_tool(program.team, schema=SCHEMA, pinned=[], undo="")
    open_fields = {"type": "object", "properties": {"pin": {"type": "string"}, "to": {"type": "string"}}}
    return planned(program, open_fields, {"pin": PIN, "to": "Ann"})


@pytest.fixture
def reader(gate: Gate) -> Client:
    return signed_in(make_user("Rea Reviewer", gate.team))


@pytest.mark.parametrize("page", PAGES)
def test_a_runs_pages_and_its_api_hide_it(gate: Gate, reader: Client, page: str) -> None:
    decide(gate)
    shown = reader.get(page.format(run=gate.run_id))
    assert shown.status_code in (200, 302), shown.content
    assert PIN not in shown.content.decode()


def test_the_api_says_where_it_is_and_the_rest_is_shown(gate: Gate, reader: Client) -> None:
    told = reader.get(f"/api/runs/{gate.run_id}/checkpoints/2").json()
    assert told["masked"] == ["/payment/pin"]
    assert told["state"]["payment"]["to"] == "Ann"


def test_an_edit_of_its_neighbour_keeps_it(gate: Gate) -> None:
    """The form and the order see a placeholder, and the run goes on with the value."""
    saved = store.load_checkpoint(Checkpoint.objects.get(run=gate.run_id, seq=2).pk)
    writes = request.edited(gate.run, saved, [{"op": "replace", "path": "/payment/to", "value": "Bea"}])
    assert writes["payment"] == {"pin": PIN, "to": "Bea"}


def test_a_patch_cannot_copy_it_to_where_it_is_shown(gate: Gate) -> None:
    reviewer = make_user("Bob", gate.team)
    copied = [{"op": "copy", "from": "/payment/pin", "path": "/payment/to"}]
    with pytest.raises(RewindRefused):
        rewind.edit(gate.run, at=2, patch=copied, by=reviewer, feedback="", key="once")


def test_who_may_reveal_secrets_reads_it_there(gate: Gate) -> None:
    person = make_user("Rita", gate.team, may=(*MEMBER, "approvals.reveal_secret"))
    first = Checkpoint.objects.select_related("plan").get(run=gate.run_id, seq=2)
    assert reveal_secret.of_checkpoint(gate.run, first, "/payment/pin", by=person) == PIN


def test_a_run_of_another_lineage_says_nothing_of_it(gate: Gate, reader: Client) -> None:
    """A tool's place in one run is a plain field in another."""
    other = Program(team=gate.team, agent=gate.run.plan.agent)
    told = other.ok(other.post("runs", {"agent": other.agent, "input": {"invoice": {}}}))
    other.run = told["id"]
    other.claim()
    other.draft(pin="plain")
    assert reader.get(f"/api/runs/{other.run}/checkpoints/2").json()["state"]["payment"]["pin"] == "plain"
