"""Claude Code asks by --permission-prompt-tool, to the letter of its contract; an approval is handed out to one call.

The same call ran again nine minutes after it had been approved, and under its id without end. And what a server does
not hand out allows nothing: one older than its clients answers 404, and 403 to a token without the scope runs:work.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime, timedelta
from typing import Any

import pytest
from holdpoint import NotHandedOut, sending
from holdpoint.endings import INSTEAD
from holdpoint.mcp import asking, hook
from mcp import Client

from approvals.models import Decision, Gate
from checkpoints.models import Event, Run
from tests.agents.remote.outside_program import decide
from tests.clients.losing_proxy import Fate, Sent, Start
from tests.clients.mcp.mcp_client import Json, Tools, beside, by_http, by_stdio, called, decided, said, still_open, told
from tests.clients.world import WIRE as PAID
from tests.clients.world import World
from tests.factories import ann, make_user
from tests.factories.tokens import make_token
from tests.harness.examples import first_alone, many
from tests.harness.waiting import PATIENCE, until

PROMPT = "permission_prompt"
EDIT = {"file_path": "/src/app.py", "old_string": "x = 1\n", "new_string": "x = 2\n"}
PAST = -2.0  # seconds: the server tells its time in whole ones


def use(input: dict[str, Any], *, tool: str = "Edit", id: str = "") -> dict[str, Any]:
    return {"tool_name": tool, "input": input} | ({"tool_use_id": id} if id else {})


@pytest.mark.parametrize("way", first_alone(["stdio", "auto", "legacy"]))
def test_people_allow_change_and_refuse_uses_of_tools(world: World, way: str) -> None:
    """By each transport and each age of the protocol; an id is good for one input only."""
    bash = use({"command": "rm -rf build"}, tool="Bash")
    other = use({**EDIT, "new_string": "import os\n"}, id="toolu_01")

    async def use_all() -> list[dict[str, Any]]:
        async with by_stdio(world, "mcp") if way == "stdio" else by_http(world, mode=way) as client:
            return [
                told(await client.call_tool(PROMPT, each))
                for each in (use(EDIT, id="toolu_01"), use(EDIT), bash, other)
            ]

    answers = beside(use_all)
    assert world.decides().title == "Edit /src/app.py"
    world.decides("edit", arguments={"Edit": {**EDIT, "new_string": "x = 3\n"}})
    world.decides("reject", comment="Not while the release runs")
    allowed, changed, refused, again = answers.result(PATIENCE)
    assert allowed == {"behavior": "allow", "updatedInput": EDIT}
    assert changed == {"behavior": "allow", "updatedInput": {**EDIT, "new_string": "x = 3\n"}}
    assert refused == {
        "behavior": "deny",
        "message": f"Ann Okafor said no to Bash: Not while the release runs. {INSTEAD}",
    }
    assert (again["behavior"], "used before for another call" in again["message"]) == ("deny", True)
    assert Gate.objects.filter(team=world.team).count() == 3


@pytest.mark.parametrize("id", first_alone(["", "toolu_01"]))
def test_what_takes_longer_than_the_client_waits_is_not_lost(world: World, id: str) -> None:
    call = Tools(world)
    ask = lambda: call(PROMPT, use(EDIT, id=id))  # noqa: E731
    early = json.loads(still_open(ask))
    gate = world.gate()
    assert early["behavior"] == "deny"
    assert f"Nobody has decided yet at gate {gate.pk}, so nothing was done. Go on without it" in early["message"]
    assert json.loads(still_open(ask)) == early
    decide(gate, "approve")
    assert told(decided(ask)) == {"behavior": "allow", "updatedInput": EDIT}
    assert Gate.objects.filter(team=world.team).count() == 1


def test_a_decision_that_came_late_is_for_the_one_call_that_the_model_makes_anew(world: World) -> None:
    """A call that a model makes anew has a new id: its decision was lost, and people were asked once more."""
    call = Tools(world)
    still_open(lambda: call(PROMPT, use(EDIT, id="toolu_01")))
    decide(world.gate(), "approve")
    again = decided(lambda: call(PROMPT, use(EDIT, id="toolu_02")))
    assert told(again) == {"behavior": "allow", "updatedInput": EDIT}
    assert Gate.objects.filter(team=world.team).count() == 1
    first = told(decided(lambda: call(PROMPT, use(EDIT, id="toolu_01"))))  # whose answer was lost asks again
    assert (first["behavior"], "to another call" in first["message"]) == ("deny", True)
    third = json.loads(still_open(lambda: call(PROMPT, use(EDIT, id="toolu_03"))))
    assert third["behavior"] == "deny"
    assert Gate.objects.filter(team=world.team).count() == 2


def refusal(world: World) -> asking.Answer:
    """What the same use without an id is told, asked with hardly any time to wait."""
    posting = asking.keyed(asking.question("Edit", EDIT), "permission")
    return world.awaits(lambda hp: asking.ask(hp, posting, asking.Limits(0.02))).result(PATIENCE)


@pytest.mark.parametrize("hours", first_alone([3, -3]))
def test_a_refusal_is_told_again_for_a_while_by_the_servers_clock(
    world: World, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """On a client whose clock was ahead each decision was over at once, so that people were asked without end."""

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(hours=hours)

    monkeypatch.setattr(sending, "datetime", Wrong)
    assert refusal(world).status == "open"
    gate = world.decides("reject", comment="Not now")
    assert [(refusal(world).status, refusal(world).gate) for _ in range(2)] == [("rejected", gate.pk)] * 2
    monkeypatch.setattr(asking, "LASTS", PAST)
    newer = refusal(world)
    assert (newer.status, newer.gate != gate.pk) == ("open", True)
    assert refusal(world).gate == newer.gate


@pytest.mark.examples
def test_many_prompts_at_once_get_the_answers_of_two_people(world: World) -> None:
    """The mark: none is misrouted, lost, asked or answered twice, and the run of each has ended."""
    number = many(100)

    async def one(client: Client, at: int) -> dict[str, Any]:
        """Ask as Claude Code does, and again where people took longer than a call waits."""
        while True:
            command = use({"command": f"echo {at}"}, tool="Bash", id=f"toolu_{at:03}")
            found = told(await client.call_tool(PROMPT, command))
            if "sk again" not in found.get("message", ""):
                return found

    async def ask_all() -> list[dict[str, Any]]:
        async with by_http(world, mode="auto") as client:
            return await asyncio.gather(*(one(client, at) for at in range(number)))

    asked = beside(ask_all)
    gates = until(lambda: opened(world, number), what=f"{number} gates", within=4 * PATIENCE)
    assert gates is not None
    people, wanted = [ann(world.team), make_user("Bob Lindqvist", world.team)], {}
    for at, gate in enumerate(gates):
        person, command = people[at // 2 % 2], gate.title.removeprefix("Run ")
        if at % 2:
            decide(gate, "approve", by=person)
            wanted[command] = {"behavior": "allow", "updatedInput": {"command": command}}
        else:
            decide(gate, "reject", by=person, comment=f"No {gate.pk}")
            no = f"{person.get_full_name()} said no to Bash: No {gate.pk}. {INSTEAD}"
            wanted[command] = {"behavior": "deny", "message": no}
    assert asked.result(8 * PATIENCE) == [wanted[f"echo {at}"] for at in range(number)]
    assert Gate.objects.filter(team=world.team).count() == number
    assert Decision.objects.filter(gate__team=world.team).count() == number
    assert not Run.objects.filter(team=world.team, status__in=Run.LIVE).exists()


def opened(world: World, number: int) -> list[Gate] | None:
    found = list(Gate.objects.open().filter(team=world.team).order_by("pk"))
    return found if len(found) == number else None


def test_what_it_cannot_take_is_an_error_of_the_tool_that_says_what_to_correct(world: World) -> None:
    wrong = called(world, PROMPT, {"tool_name": "Bash", "input": "ls"}).result(PATIENCE)
    assert wrong.is_error
    assert "input: Input should be a valid dictionary" in said(wrong)
    odd = told(called(world, PROMPT, use({}, tool="Ba sh")).result(PATIENCE))
    assert odd["behavior"] == "deny"
    assert "letters, digits" in odd["message"]
    assert not Gate.objects.filter(team=world.team).exists()


OLDER = (
    "The Holdpoint server is older than this client and cannot hand out the answer at gate {gate} once, so the call "
    "was not made. Update the server, then ask again."
)
NO_SCOPE = (
    "This token may not work on runs, so the answer at gate {gate} was not handed out to it and the call was not made. "
    "Use a token with the scope runs:work."
)
OTHERS = (
    "The server did not hand out the answer at gate {gate}, so the call was not made: No such gate, or you may not see "
    "it. GET /api/gates lists those that you may see."
)
WIRE: Json = {"action": "wire", "title": "Pay invoice 7", "arguments": PAID}
USE: Json = {"tool_name": "Bash", "input": {"command": "make deploy"}}


def lacking(sent: Sent) -> str:
    """What an older server makes of it: it does not know the address."""
    return "/api/nowhere" if sent.path.endswith("/handouts") else ""


def hiding(sent: Sent) -> str:
    """What the server makes of it where the gate is another team's, or gone."""
    return "/api/gates/987654321/handouts" if sent.path.endswith("/handouts") else ""


def is_kept_back(gate: Gate) -> bool:
    return not Event.objects.filter(kind="gate.handed_out", subject=gate.subject).exists()


@pytest.mark.parametrize(("fate", "words"), first_alone([(None, NO_SCOPE), (hiding, OTHERS), (lacking, OLDER)]))
def test_what_is_not_handed_out_is_told_with_what_lacks(web: str, proxy: Start, fate: Fate | None, words: str) -> None:
    """The token may not work on runs, the gate is hidden, or the server is older."""
    world = World(proxy(fate).url if fate else web)
    if fate is None:
        scopes = ("runs:start", "runs:read", "gates:read")
        _, world.token = make_token(world.owner, *scopes, team=world.team, agent=world.agent)
    with world.client() as hp:
        pending = hp.ask.defer("wire", PAID)
        gate = world.decides()
        with pytest.raises(NotHandedOut) as refused:
            hp.said(pending.id)
    assert (refused.value.gate, str(refused.value)) == (gate.pk, words.format(gate=gate.pk))
    answer = Tools(world, PATIENCE)("await_decision", {"gate": gate.pk}).result(PATIENCE)
    assert (answer.is_error, said(answer)) == (True, f"Nothing was done: {words.format(gate=gate.pk)}")
    assert is_kept_back(gate)


def test_the_prompt_the_tool_and_the_hook_deny_what_is_not_handed_out(
    proxy: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(proxy(lacking).url)
    for name, value in world.env.items():
        monkeypatch.setenv(name, value)
    call = Tools(world, PATIENCE)
    use = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": USE["input"]}
    ways: list[Callable[[], Future[Any]]] = [
        lambda: call("permission_prompt", USE),
        lambda: call("request_approval", WIRE),
        lambda: beside(lambda: hook.answered(json.dumps(use).encode(), "")),
    ]
    for ask in ways:
        asked = ask()
        gate = world.decides()
        found = asked.result(PATIENCE)
        text = json.dumps(found) if isinstance(found, dict) else said(found)
        assert OLDER.format(gate=gate.pk) in text
        assert '"deny"' in text or found.is_error
        assert is_kept_back(gate)


def test_what_a_run_performs_is_not_told_as_an_answer_beside_it(world: World) -> None:
    """`said` of a gate that was posted by `approve` returned its approval each time, and `resume` performed it too."""
    with world.client() as hp:
        pending = hp.approve.defer("wire", PAID)
        world.decides()
        with pytest.raises(NotHandedOut, match=rf"gate {pending.id}, so the call was not made: .* done by its run"):
            hp.said(pending.id)
        with hp.resume(pending.id) as call:
            call.done({"id": "tx_1"})
    assert Run.objects.get(pk=pending.run).status == "completed"


def test_a_use_that_was_allowed_is_allowed_again_only_while_its_answer_may_be_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "LOST", 10 * PATIENCE)
    call, sent = Tools(world, PATIENCE), {**USE, "tool_use_id": "toolu_01"}
    asked = call(PROMPT, sent)
    gate = world.decides()
    for answer in (asked, call(PROMPT, sent)):
        assert told(answer.result(PATIENCE))["behavior"] == "allow"
    monkeypatch.setattr(asking, "LOST", PAST)
    at = Event.objects.get(kind="gate.handed_out", subject=gate.subject).at
    assert told(call(PROMPT, sent).result(PATIENCE)) == {
        "behavior": "deny",
        "message": f"You were told this at {at:%H:%M} UTC on {at:%-d %B} already. If you have done it, do not do it "
        "again. An approval is for one call, so this one is not allowed: make it anew, and people are asked again.",
    }
    assert Gate.objects.filter(team=world.team).count() == 1


def test_under_its_id_the_same_answer_is_read_again_and_without_one_people_are_asked_again(world: World) -> None:
    asked = called(world, "request_approval", WIRE)
    world.decides()
    assert told(asked.result(PATIENCE))["status"] == "approved"
    call = {**WIRE, "request_id": "7"}
    asked = called(world, "request_approval", call)
    gate = world.decides()
    first = told(asked.result(PATIENCE))
    again = told(called(world, "request_approval", call).result(PATIENCE))
    at = Event.objects.get(kind="gate.handed_out", subject=gate.subject).at
    assert again["message"] == (
        f"You were told this at {at:%H:%M} UTC on {at:%-d %B} already. If you have done it, do not do it again. "
        f"{first['message']}"
    )
    assert again["told_at"] == at.isoformat()
    assert again["arguments"] == first["arguments"]
    asked = called(world, "request_approval", WIRE)
    assert world.decides().pk > gate.pk
    assert told(asked.result(PATIENCE))["status"] == "approved"
    assert Gate.objects.filter(team=world.team).count() == 3


def test_of_two_calls_that_wait_at_one_gate_one_has_its_approval(world: World) -> None:
    both = [called(world, "request_approval", WIRE) for _ in range(2)]
    first = world.gate()
    until(lambda: Event.objects.filter(run_id=first.run_id).exists(), what="both wait")
    decide(first, "approve")
    second = world.gate()
    assert second.pk != first.pk
    assert [each.done() for each in both].count(True) <= 1
    decide(second, "approve")
    answers = [told(each.result(PATIENCE)) for each in both]
    assert {each["gate"] for each in answers} == {first.pk, second.pk}
    assert all("told_at" not in each for each in answers)
