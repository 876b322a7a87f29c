"""What people registered as secret of a tool, in the state of a program that marks nothing itself.

At its gate the whole arguments were one secret of the state, which the page offered to reveal and the answer refused.
"""

from __future__ import annotations

from typing import Any

from approvals.cards.card import state_veil
from approvals.models import Gate
from checkpoints.models import Event
from checkpoints.runs.plans import spec_of
from tests.agents.remote.outside_program import Program
from tests.approvals.schema.redaction.vault_runs import member
from tests.approvals.tools.registered_tools import make_tool
from tests.factories.events import data_of
from tests.harness.signed_in_clients import signed_in

from .test_marks_of_secrets import page_of, posted

SECRET = "hunter22-of-the-vault"
PASSWORD = {"type": "object", "properties": {"value": {"type": "string", "writeOnly": True}}}
VAULT: dict[str, Any] = {
    "type": "object",
    "properties": {"user": {"type": "string"}, "password": {"$ref": "#/$defs/password"}},
    "additionalProperties": False,
    "$defs": {"password": {**PASSWORD, "additionalProperties": False}},
}
PLACE = "/act/password/value"


def asked(program: Program) -> Gate:
    """A gate that a program posts, without a schema or a plan, with a call of a tool that people registered."""
    make_tool(program.team, name="vault.set", schema=VAULT, pinned=[], undo="")
    return posted(program, {}, {"user": "robo", "password": {"value": SECRET}}, tool="vault.set")


def test_each_secret_of_the_state_is_hidden_at_its_own_place() -> None:
    gate = asked(Program())
    veil, state = state_veil(spec_of(gate.run.plan), gate.standing().card), gate.saved.state
    assert list(veil.places(state)) == [PLACE]
    assert veil.masked(state)["act"]["user"] == "robo"
    assert SECRET not in page_of(gate)


def test_what_the_page_offers_to_reveal_is_revealed_with_its_event() -> None:
    gate = asked(Program())
    person = signed_in(member(gate.team, reveals=True))
    page = person.get(f"/gates/{gate.pk}/").content.decode()
    assert f'value="{PLACE}"' in page
    answer = person.post(f"/gates/{gate.pk}/reveals/", {"at": PLACE})
    assert (answer.status_code, SECRET in answer.content.decode()) == (200, True)
    [event] = Event.objects.filter(kind="secret.revealed")
    assert data_of(event)["pointer"] == PLACE
    assert person.post(f"/gates/{gate.pk}/reveals/", {"at": "/act/user"}).status_code == 404
