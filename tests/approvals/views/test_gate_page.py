"""The gate's page: who sees it, that it says what is asked, the talk at it, and who is seen to look."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import Group, User
from django.db import transaction

from approvals.gates import remarks, thread
from approvals.live import channel_layer
from approvals.models import Decision, Gate, Looking
from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.models import Checkpoint, Event, EventText, Run
from checkpoints.store import claims
from tests.approvals.live.test_socket import socket
from tests.checkpoints.audit.sealed_events import erase
from tests.factories import (
    ann,
    bob,
    decide,
    edit_amount,
    eve,
    make_action,
    make_card,
    make_gate,
    make_policy,
    make_run,
    make_state,
    make_team,
    make_user,
    mira,
)
from tests.harness.signed_in_clients import form_of, post, signed_in
from tests.harness.waiting import PATIENCE


def test_a_gates_page_says_what_is_asked_and_what_a_yes_does() -> None:
    gate = make_gate(team=(team := make_team()), card=make_card(risk="high", reasons=["Amount over 100"]))
    page = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "Refund €120.00 to Marit" in page
    assert "Amount over 100" in page
    assert "Approve: pay €120.00, reply" in page
    assert "Check first: <bdi>Amount</bdi>" in page
    assert 'name="args.refund/amount"' in page
    assert "If you send it back to" in page


def test_a_reviewer_from_elsewhere_sees_the_gate_and_no_run() -> None:
    team, finance = make_team(), make_team("Finance", may=("approvals.decide_gate",))
    policy = make_policy(team, groups=(finance,))
    gate = make_gate(policy=policy)
    page = signed_in(mira(finance)).get(f"/gates/{gate.pk}/").content.decode()
    assert "Refund €120.00 to Marit" in page
    assert 'id="decision"' in page
    assert "Steps so far" not in page
    assert f"/runs/{gate.run_id}/" not in page


def test_whoever_may_only_look_sees_why_and_gets_no_form() -> None:
    team = make_team(may=("checkpoints.view_run",))
    gate = make_gate(team=team)
    page = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert 'id="decision"' not in page
    assert "with the permission “decide at the gates of policies that name the team” can decide this." in page
    assert "Ask your administrator, who can give it" in page
    sheet = page[page.index('id="action-refund"') :].partition("</section>")[0]
    assert '<span class="label"><bdi>' in sheet
    assert 'class="tree"' not in sheet
    assert "<input" not in sheet


def test_a_megabyte_in_a_field_makes_a_small_page_that_says_so() -> None:
    team = make_team()
    mail = "word " * 200_000 + "the end"
    run = make_run(team=team, state=make_state(proposal={"amount": "1", "currency": "EUR", "reply": mail}))
    gate = make_gate(run=run)
    client = signed_in(ann(team))
    page = client.get(f"/gates/{gate.pk}/").content.decode()
    assert len(page) < 400_000
    assert "too long to edit here" in page
    assert "the end" in page
    whole = f"/gates/{gate.pk}/values/?at=/proposal/reply"
    assert whole in page
    last = client.get(f"{whole}&from=999990").content.decode()
    assert "the end" in last
    assert client.get(f"/gates/{gate.pk}/values/?at=/nowhere").status_code == 404


def test_an_edit_that_stands_is_shown_with_who_made_it_and_is_news_to_a_page_of_the_version_before() -> None:
    """Any other number was taken for an older version, whose editor nobody could name: the server failed."""
    gate = make_gate(policy=make_policy(team := make_team(), quorum=2))
    reader = signed_in(ann(team))

    def news(seen: int) -> str:
        return reader.get(f"/gates/{gate.pk}/status/?seen={seen}").content.decode()

    assert "edited this gate" not in news(1)
    decide(gate, make_user("Bob Lindqvist", team), "edit", arguments=edit_amount(gate, "7.00"))
    for words in ("Bob Lindqvist edited this gate while you had it open.", "120.00", "7.00"):
        assert words in news(1)
    assert 'id="decision"' not in news(1), "the form is never morphed"
    for seen in (2, 99):
        assert "edited this gate" not in news(seen)
    page = reader.get(f"/gates/{gate.pk}/").content.decode()
    assert "Edited by Bob Lindqvist" in page
    assert 'name="proposal" value="2"' in page
    assert 'value="7.00"' in page


def test_a_state_that_does_not_verify_is_neither_shown_nor_decided_over() -> None:
    gate, reviewer = make_gate(team=(team := make_team())), ann(team)
    form = form_of(gate)
    stored = Checkpoint.objects.get(pk=gate.checkpoint)
    flipped = bytes(stored.payload[:-1]) + bytes([stored.payload[-1] ^ 1])
    Checkpoint.objects.filter(pk=gate.checkpoint).update(payload=flipped)
    client = signed_in(reviewer)
    for address in (f"/gates/{gate.pk}/", f"/gates/{gate.pk}/values/?at=/order"):
        answer = client.get(address)
        assert answer.status_code == 409
        assert "failed its integrity check" in answer.content.decode()
    assert (post(reviewer, gate, form).status_code, Gate.objects.get(pk=gate.pk).status) == (409, "open")
    Checkpoint.objects.filter(pk=gate.checkpoint).update(payload=stored.payload)  # other tests verify every run


def make_lacking(team: Group) -> Gate:
    order = {"type": "string", "title": "Order number"}
    schema = {"type": "object", "properties": {"order": order}, "required": ["order"]}
    run = make_run(state=make_state(proposal={"order": ""}), first_step="review", team=team)
    action = make_action(schema=schema, pinned=[], effect="", missing=["/order"])
    return make_gate(run=run, card=make_card(actions=[action]))


def test_a_gate_that_lacks_something_asks_for_it_and_takes_no_approval_of_what_is_known_to_be_wrong() -> None:
    team = make_team()
    gate = make_lacking(team)
    page = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "Fill in what is missing: <bdi>Order number</bdi>." in page
    assert 'data-choice="approve"' not in page
    assert 'name="verdict" value="edit" data-hotkey="e" checked' in page
    field = page[page.index('data-field="/order"') :].partition('<p class="error"')[0]
    assert ">Required</span>" in field
    assert 'aria-required="true"' in field
    answer = post(ann(team), gate, form_of(gate))
    assert answer.status_code == 422
    refused = answer.content.decode()
    assert "Fill this in: nothing can be approved without it." in refused[refused.index('data-field="/order"') :]
    assert Gate.objects.get(pk=gate.pk).status == "open"


@pytest.mark.parametrize("memo", [False, True])
def test_a_gate_that_lacks_nothing_preselects_nothing(memo: bool) -> None:
    """Reviewers of an effect that is called with an empty text were told to fill it in."""
    gate = make_gate(team=(team := make_team()))
    if memo:
        schema = {"type": "object", "properties": {"memo": {"type": "string"}}, "required": ["memo"]}
        run = make_run(state=make_state(proposal={"memo": ""}), first_step="review", team=team)
        gate = make_gate(run=run, card=make_card(actions=[make_action(schema=schema, pinned=[])]))
    page = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "Fill in what is missing" not in page
    assert not re.search(r'name="verdict" value="[a-z]+" data-hotkey="." checked', page)


def say(user: User, gate: Gate, text: str, key: str = "k1") -> Any:
    return signed_in(user).post(f"/gates/{gate.pk}/remarks/", {"text": text, "key": key})


def test_what_somebody_says_is_an_event_with_its_words_beside_it_and_is_on_the_page() -> None:
    gate = make_gate(team=(team := make_team()))
    reader = make_user("Rita Reader", team)
    assert say(reader, gate, "Is the <i>goodwill</i> in it?\r\nI think not.").status_code == 303
    event = Event.objects.get(subject=gate.subject, kind="gate.remarked")
    assert b"goodwill" not in bytes(event.data)
    assert bytes(EventText.objects.get(event=event).text) == b"Is the <i>goodwill</i> in it?\nI think not."
    page = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "Is the &lt;i&gt;goodwill&lt;/i&gt; in it?" in page
    assert "Rita Reader" in page
    erase(event)
    assert "These words were erased." in signed_in(ann(team)).get(f"/gates/{gate.pk}/status/").content.decode()


def test_the_same_form_twice_says_it_once_and_no_words_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sent again by a browser that had no answer, the last allowed was refused for what it was itself the last of."""
    monkeypatch.setattr(remarks, "MOST_EACH", 2)
    gate = make_gate(team=(team := make_team()))
    reviewer = ann(team)
    answers = [say(reviewer, gate, f"Word {key}", key=key).status_code for key in ("k1", "k1", "k2", "k2", "k3")]
    assert answers == [303, 303, 303, 303, 422]
    for text in ("", " \n ", "x" * 4001):
        answer = say(bob(team), gate, text, key="k3")
        assert answer.status_code == 422
    assert "Write at most 4,000 characters." in answer.content.decode()
    assert Event.objects.filter(subject=gate.subject, kind="gate.remarked").count() == 2


def test_what_was_said_at_earlier_gates_of_the_run_is_told_to_whoever_sees_the_run_and_stays_on_its_own_page() -> None:
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
    # Whoever saw the run saw an empty conversation, once much had been said in it since.
    with transaction.atomic():
        for number in range(2 * thread.SHOWN):
            second.say("gate.remarked", by=SYSTEM, data={"key": str(number)}, text="Something else.")
    assert "Only the frames came back" in signed_in(ann(team)).get(f"/gates/{first.pk}/").content.decode()


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
    looked = channel_layer.channel(channel_layer.LOOKING).encode()
    for digits in (200, 5000):
        await channel_layer.hand_on({"type": "message", "channel": looked, "data": b"9" * digits})
    member = await database_sync_to_async(ann)(await database_sync_to_async(make_team)())
    async with socket(member) as mine:
        await mine.consumer.channel_layer.group_add("gate.7", mine.consumer.channel_name)
        for crafted in (b"holdpoint.0.ring.nonsense", b"", "text", None):
            await channel_layer.hand_on({"type": "message", "channel": crafted, "data": b"7"})
        await channel_layer.hand_on({"type": "message", "channel": looked, "data": b"7"})
        assert await mine.hear() == {"kind": "gate.looking", "subject": "looking:7"}


def test_what_viewers_fetch_has_the_readers_queue_once_the_gate_has_ended() -> None:
    team = make_team()
    gate, reader = make_gate(team=team), signed_in(ann(team))
    path = f"/gates/{gate.pk}/status/"
    assert "gate-place" not in reader.get(path, headers={"HX-Request": "true"}).content.decode()
    decide(gate, ann(team))
    assert "gate-place" in reader.get(path, headers={"HX-Request": "true"}).content.decode()
