"""A key belongs to the agent, whichever of its tokens is sent with it.

A token that was replaced during a wait made the same request under the same key another one: a second gate was opened,
approved, and what it asked about was done twice.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from agents import tokens
from agents.api.protocol import idempotency_keys
from agents.models import Answer
from agents.models import Client as Heard
from agents.models.token import TokenScope
from approvals.models import Gate
from checkpoints.actors import SYSTEM
from tests.agents.api.test_doors import refusal
from tests.agents.remote.outside_program import WIRE, Program, decide
from tests.factories import MEMBER, make_policy, make_team, make_user
from tests.factories.tokens import bearing, make_token
from tests.harness.racing_threads import race

ASK: dict[str, Any] = {"title": "Wire 120.00?", "actions": [{"id": "wire", "arguments": WIRE}]}
KEY = "invoice-7"


def asks(program: Program, **more: Any) -> Any:
    return program.post("gates", {**ASK, **more}, key=KEY)


def with_another_token(program: Program, **more: Any) -> Program:
    """The same program with another token of its agent, as after a replacement; `owner` may be somebody else."""
    replaced = Program(program.team, program.agent, more.pop("owner", program.owner))
    if more:
        _, sent = make_token(replaced.owner, team=program.team, agent=program.agent, **more)  # type: ignore[arg-type]
        replaced.client = bearing(sent)
    return replaced


def test_a_token_in_the_place_of_a_revoked_one_finds_the_first_gate() -> None:
    program = Program()
    first, token = program.ok(asks(program)), tokens.find_token(program.sent)
    assert token is not None
    tokens.revoke(token, by=SYSTEM)
    replaced = with_another_token(program, owner=make_user("Nora New", program.team))
    again = asks(replaced)
    assert (replaced.ok(again), again[idempotency_keys.REPLAYED]) == (first, "true")
    assert Gate.objects.filter(team=program.team).count() == 1
    other = {**ASK, "actions": [{"id": "wire", "arguments": {**WIRE, "amount": "1.00"}}]}
    assert refusal(replaced.post("gates", other, key=KEY), 409)["code"] == "key_reused"


def test_a_key_is_stored_where_the_version_before_looks_for_it_and_found_where_that_one_stored_it() -> None:
    """Both run side by side during an update, and answers are kept for a week: neither opens a second gate."""
    program = Program()
    first, token = program.ok(asks(program)), tokens.find_token(program.sent)
    assert token is not None
    row = Answer.objects.get(key=KEY, who=f"token:{token.pk}")  # where the version before looks
    row.pk, row.key = None, "stored-before"
    row.save()
    other = with_another_token(program)
    assert other.ok(other.post("gates", ASK, key="stored-before")) == first
    second = other.ok(other.post("gates", ASK, key="x"))  # of a row for each token its own comes first
    assert first["gate"] != second["gate"]
    Answer.objects.filter(key="x").update(key=KEY)
    assert (program.ok(asks(program)), other.ok(asks(other))) == (first, second)


def test_another_agent_one_of_another_team_and_a_person_meet_no_key_of_the_agents() -> None:
    program = Program()
    assert program.owner is not None
    others = [Program(program.team, owner=program.owner), Program(make_team(may=MEMBER), program.agent)]
    gates = [each.ok(asks(each))["gate"] for each in (program, *others)]
    for _ in range(2):  # two tokens of one person are two senders
        _, sent = make_token(program.owner, str(TokenScope.START), team=program.team)
        own = Program(program.team, program.agent, program.owner)
        own.client = bearing(sent)
        gates.append(own.ok(asks(own, agent=program.agent))["gate"])
    assert len(set(gates)) == 5


def test_of_two_tokens_that_ask_at_once_one_opens_the_gate() -> None:
    program = Program()
    programs = [program, with_another_token(program), with_another_token(program)]
    answers = race([partial(asks, each) for each in programs])
    assert len({each.content for each in answers}) == 1
    assert Gate.objects.filter(team=program.team).count() == 1


def test_a_token_for_one_policy_is_handed_what_named_it_or_is_work_and_no_gate_of_another() -> None:
    """It was refused every request of another token, so that a second gate opened, and a report was never repeated."""
    program = Program()
    for name in ("default", "two-people"):
        make_policy(program.team, name=name)
    program.ok(asks(program))
    limited = with_another_token(program, policy="two-people")
    assert "only under the policy two-people" in refusal(asks(limited), 403)["detail"]
    assert Gate.objects.filter(team=program.team).count() == 1, "nor does it open a second one"
    own = limited.ok(limited.post("gates", ASK, key="own"))
    assert limited.ok(limited.post("gates", ASK, key="own")) == own
    assert program.ok(program.post("gates", ASK, key="own")) == own, "one without a limit may ask under this one too"
    program.start()
    ops = [{"op": "set", "field": "payment", "value": WIRE}]
    saved = program.ok(program.work("checkpoints", key="save", step="draft", ops=ops))
    limited.run, limited.token = program.run, program.token
    assert limited.ok(limited.work("checkpoints", key="save", step="draft", ops=ops)) == saved


@pytest.mark.parametrize(("address", "body"), [("gates", ASK), ("threads/prunes", {"thread": "chat-1"})])
def test_a_token_whose_owner_may_start_no_runs_any_more_is_handed_nothing(address: str, body: dict[str, Any]) -> None:
    program = Program()
    program.ok(program.post(address, body, key=KEY))
    replaced = with_another_token(program, owner=make_user("Gus Gone", program.team))
    assert replaced.owner is not None
    replaced.owner.groups.clear()
    refusal(replaced.post(address, body, key=KEY), 403)
    assert program.owner is not None
    unscoped = Program(program.team, program.agent, program.owner)
    unscoped.client = bearing(make_token(program.owner, TokenScope.READ, team=program.team, agent=program.agent)[1])
    assert refusal(unscoped.post(address, body, key=KEY), 403)["code"] == "insufficient_scope"


def test_a_key_is_freed_by_any_token_of_the_agent() -> None:
    program = Program()
    first = program.ok(asks(program, ask_only=True))["gate"]
    decide(Gate.objects.get(pk=first))
    replaced = with_another_token(program)
    replaced.ok(replaced.post(f"gates/{first}/handouts", {"to": "call-1", "frees": KEY}))
    assert program.ok(asks(program, ask_only=True))["gate"] != first


def test_a_program_that_comes_again_says_anew_whether_it_goes_away() -> None:
    """It had said that it goes away, came back, died, and people were never told."""
    program, several = Program(), {"gates": [ASK], "deferred": True}
    run = program.ok(asks(program, deferred=True))["run"]
    Heard.objects.filter(run=run).update(heard_at="2020-01-01T00:00:00Z", missed_at="2020-01-01T00:00:00Z")
    program.ok(asks(program))
    row = Heard.objects.get(run=run)
    assert (row.deferred, row.missed_at) == (False, None)
    assert row.heard_at.year > 2020, "else people would be told at once that it is silent"
    first = program.ok(program.post("gates/batches", several, key="several"))
    assert program.ok(program.post("gates/batches", {**several, "deferred": False}, key="several")) == first
    assert not Heard.objects.get(run=first["gates"][0]["run"]).deferred, "it waits this time, and is missed if it dies"


def test_an_action_without_arguments_is_gone_on_with_by_its_key_too() -> None:
    """Its words count, but not whether its program goes away meanwhile, nor the conversation."""
    program = Program()
    bare = {"title": "Restart?", "actions": [{"id": "restart", "arguments": {}}]}
    first = program.ok(program.post("gates", {**bare, "deferred": True, "thread": "chat-1"}, key=KEY))
    assert program.ok(program.post("gates", bare, key=KEY)) == first
    assert refusal(program.post("gates", {**bare, "title": "Stop?"}, key=KEY), 409)["code"] == "key_reused"
