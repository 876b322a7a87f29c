"""Talking at a gate, and who is seen to look at it."""

from __future__ import annotations

import asyncio

import pytest
from channels.db import database_sync_to_async
from django.db import transaction

from approvals.gates import remarks, thread
from approvals.live import ephemeral
from approvals.models import Decision, Gate, Looking
from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.events import commit_order
from checkpoints.models import Event, EventText, Run
from checkpoints.store import claims
from tests.approvals.live.test_socket import socket, tell
from tests.checkpoints.audit.sealed_events import erase
from tests.factories import ann, bob, decide, eve, make_gate, make_policy, make_team, make_user
from tests.harness.signed_in_clients import signed_in
from tests.harness.waiting import PATIENCE


def say(user: object, gate: object, text: str, key: str = "k1", **more: str) -> object:
    return signed_in(user).post(f"/gates/{gate.pk}/remarks/", {"text": text, "key": key}, **more)  # type: ignore[arg-type, attr-defined]


def test_what_somebody_says_is_an_event_with_its_words_beside_it_and_is_on_the_page() -> None:
    gate = make_gate(team=(team := make_team()))
    reader = make_user("Rita Reader", team)
    assert say(reader, gate, "Is the goodwill in it?\r\nI think not.").status_code == 303  # type: ignore[attr-defined]
    event = Event.objects.get(subject=gate.subject, kind="gate.remarked")
    assert b"goodwill" not in bytes(event.data)
    assert bytes(EventText.objects.get(event=event).text) == b"Is the goodwill in it?\nI think not."
    page = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "Is the goodwill in it?" in page
    assert "Rita Reader" in page
    erase(event)
    assert "These words were erased." in signed_in(ann(team)).get(f"/gates/{gate.pk}/status/").content.decode()


def test_the_same_form_twice_says_it_once_and_no_words_say_nothing() -> None:
    gate = make_gate(team=(team := make_team()))
    reviewer = ann(team)
    for _ in range(2):
        say(reviewer, gate, "Once")
    say(reviewer, gate, "And again", key="k2")
    assert Event.objects.filter(subject=gate.subject, kind="gate.remarked").count() == 2
    for text in ("", " \n ", "x" * 4001):
        answer = say(reviewer, gate, text, key="k3")
        assert answer.status_code == 422  # type: ignore[attr-defined]
    assert "Write at most 4,000 characters." in answer.content.decode()  # type: ignore[attr-defined]
    assert Event.objects.filter(subject=gate.subject, kind="gate.remarked").count() == 2
    assert say(eve(), gate, "Me too", key="k4").status_code == 404  # type: ignore[attr-defined]


def test_the_last_thing_that_somebody_may_say_is_taken_when_it_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sent again by a browser that had no answer, it was refused for what it was itself the last of."""
    monkeypatch.setattr(remarks, "MOST_EACH", 2)
    gate = make_gate(team=(team := make_team()))
    reviewer = ann(team)
    answers = [say(reviewer, gate, f"Word {key}", key=key).status_code for key in ("k1", "k2", "k2", "k3")]  # type: ignore[attr-defined]
    assert answers == [303, 303, 303, 422]


def test_markup_in_words_is_shown_as_words() -> None:
    gate = make_gate(team=(team := make_team()))
    say(ann(team), gate, "<img src=x onerror=alert(1)>")
    page = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "<img" not in page
    assert "&lt;img" in page


def test_what_reviewers_said_at_earlier_gates_of_the_run_is_in_the_conversation_for_whoever_sees_the_run() -> None:
    team, finance = make_team(), make_team("Finance")
    policy = make_policy(team, groups=(team, finance))
    first = make_gate(policy=policy)
    decide(first, bob(team), "reject", comment="Only the frames came back")
    go_on(first)
    second = make_gate(policy=policy, run=Run.objects.get(pk=first.run_id))
    assert "Only the frames came back" in signed_in(ann(team)).get(f"/gates/{second.pk}/").content.decode()
    elsewhere = make_user("Mira", finance, may=("approvals.decide_gate",))
    assert "Only the frames" not in signed_in(elsewhere).get(f"/gates/{second.pk}/").content.decode()
    assert Decision.objects.get(gate=first).words == "Only the frames came back"


def test_what_was_said_at_a_gate_stays_on_its_page_however_much_is_said_in_the_run_since() -> None:
    """Whoever sees the run saw an empty conversation, and whoever sees the gate alone saw all of it."""
    team = make_team()
    first = make_gate(policy=make_policy(team))
    say(ann(team), first, "Is the goodwill in it?")
    decide(first, bob(team))
    go_on(first)
    second = make_gate(policy=first.policy, run=Run.objects.get(pk=first.run_id))
    with transaction.atomic():
        for number in range(2 * thread.SHOWN):
            second.say("gate.remarked", by=SYSTEM, data={"key": str(number)}, text="Something else.")
    assert "Is the goodwill in it?" in signed_in(ann(team)).get(f"/gates/{first.pk}/").content.decode()


def go_on(gate: Gate) -> None:
    """Save the step after the gate, as a worker does."""
    claim = claims.claim(gate.run_id, plan_ids=[gate.run.plan_id], worker="test", lease=30)
    assert claim is not None
    head = store.load(Run.objects.get(pk=gate.run_id))
    header = store.Header("step", "review", "review", input_digest=bytes(32), code_hash=bytes(32))
    store.save(head, {}, claim=claim, header=header, actor=SYSTEM)
    claims.release(claim, status="queued", by=SYSTEM)


async def test_whoever_has_a_gate_in_sight_is_seen_until_they_turn_away() -> None:
    team = await database_sync_to_async(make_team)()
    watcher, other = await database_sync_to_async(ann)(team), await database_sync_to_async(bob)(team)
    outsider = await database_sync_to_async(eve)()
    gate = await database_sync_to_async(make_gate)(team=team)

    browser = await database_sync_to_async(signed_in)(watcher)

    def is_seen() -> bool:
        return "Bob Lindqvist is looking" in browser.get(f"/gates/{gate.pk}/looking/").content.decode()

    async def seen(is_it: bool) -> None:
        async with asyncio.timeout(PATIENCE):
            while await database_sync_to_async(is_seen)() is not is_it:
                await asyncio.sleep(0)

    async with socket(other) as theirs, socket(outsider) as eves:
        await theirs.say({"watch": [f"gate:{gate.pk}"], "looking": gate.pk})
        await eves.say({"watch": [f"gate:{gate.pk}"], "looking": gate.pk})
        await seen(True)
        await eves.hear_all()
        assert await database_sync_to_async(Looking.objects.filter(gate=gate).count)() == 1
        await theirs.say({"watch": [f"gate:{gate.pk}"]})
        await seen(False)
        for junk in ("42", -1, 2**70, [gate.pk], True):
            await theirs.say({"watch": [], "looking": junk})
        await theirs.say({"watch": [f"gate:{gate.pk}"], "looking": gate.pk})
        await seen(True)
    await seen(False)


async def test_a_crafted_message_does_not_end_the_listening_for_who_looks() -> None:
    """A number too long to be read, or to name a group, ended the task for as long as the process lived."""
    looked = ephemeral.channel(ephemeral.LOOKING).encode()
    for digits in (200, 5000):
        await ephemeral.hand_on({"type": "message", "channel": looked, "data": b"9" * digits})
    member = await database_sync_to_async(ann)(await database_sync_to_async(make_team)())
    async with socket(member) as mine:
        await mine.consumer.channel_layer.group_add("gate.7", mine.consumer.channel_name)
        for crafted in (b"holdpoint.0.ring.nonsense", b"", "text", None):
            await ephemeral.hand_on({"type": "message", "channel": crafted, "data": b"7"})
        await ephemeral.hand_on({"type": "message", "channel": looked, "data": b"7"})
        assert await mine.hear() == {"kind": "gate.looking", "subject": "looking:7"}


async def test_words_at_a_gate_are_told_to_its_pages_and_to_no_list() -> None:
    team = await database_sync_to_async(make_team)()
    member = await database_sync_to_async(ann)(team)
    gate = await database_sync_to_async(make_gate)(team=team)
    async with socket(member) as page, socket(member) as inbox:
        await page.say({"watch": [f"gate:{gate.pk}"]})
        await page.hear_all()
        since = await database_sync_to_async(commit_order.newest_cursor)()
        await database_sync_to_async(say)(member, gate, "Hello")
        await tell(since)
        assert [fact["kind"] for fact in await page.hear_all()] == ["gate.remarked"]
        assert await inbox.hear_all() == []
