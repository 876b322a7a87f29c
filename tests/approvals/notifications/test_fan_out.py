"""Who gets a notice of which event: those whom the policy asks, as they chose, each once."""

from __future__ import annotations

import datetime as dt

import pytest
from django.contrib.auth.models import Permission, User
from django.utils import timezone

from approvals.assignments import away, claims
from approvals.assignments.reassigning import escalate, reassign
from approvals.gates import closing
from approvals.models import ChannelAddress, Escalation, Message, NoticeCursor, NotificationPreference, Policy, Profile
from approvals.notifications import channel, delivering, digest, due, fan_out
from approvals.notifications.building import NoticeMessage
from approvals.notifications.channel import NoticeAddress
from approvals.notifications.email import Email
from checkpoints import actors
from checkpoints.actors import SYSTEM
from tests.factories import (
    ann,
    bob,
    change_gate,
    decide,
    edit_amount,
    eve,
    make_card,
    make_gate,
    make_policy,
    make_team,
    make_user,
    mira,
)
from tests.harness.sent_statements import sent

from .told import fanned, people, rows

HOUR = dt.timedelta(hours=1)


def chooses(user: User, **fields: object) -> NotificationPreference:
    made: NotificationPreference = NotificationPreference.objects.create(user=user, **fields)
    return made


def message_of(notice: Message) -> NoticeMessage:
    [out] = due.prepare(Email(), [notice]).outgoing
    message: NoticeMessage = out.message
    return message


def dropped_as(notice: Message) -> list[object]:
    return [end.word for end in due.prepare(Email(), [notice]).ends]


@pytest.mark.parametrize(("end", "word"), [("expire", "expired"), ("withdraw", "withdrawn"), ("decide", "decided")])
def test_a_gates_end_is_told_and_drops_what_was_planned(end: str, word: str) -> None:
    team = make_team()
    chooses(ann(team), choices={"decided": {"email": "low"}})
    gate = make_gate(policy=make_policy(team, name="default", deadline=4 * HOUR), team=team)
    fanned()
    assert gate.deadline is not None
    assert Message.objects.get(gate=gate, kind="reminder").next_attempt_at == gate.deadline - HOUR
    if end == "expire":
        closing.pass_deadline(gate)
        closing.expire(gate)
    elif end == "withdraw":
        closing.withdraw(gate, by=SYSTEM, reason="no need")
    else:
        decide(gate, by=make_user("Nina", team))
    fanned()
    assert people(gate, "decided") == {"Ann"}
    assert rows(gate)[:2] == [("asked", "Ann", "dropped", word), ("reminder", "Ann", "dropped", word)]


def test_a_gate_tells_those_who_may_decide_it_and_whoever_started_it_only_how_it_ended() -> None:
    team, finance = make_team(), make_team("Finance")
    ann(team), mira(finance), eve()
    make_user("Reader", team, may=())
    gate = make_gate(policy=make_policy(team, name="default", groups=(finance,)), team=team)
    fanned()
    assert people(gate, "asked") == {"Mira"}
    team = make_team()
    ann(team)
    gate = make_gate(team=team, started_by=(starter := bob(team)))
    fanned()
    assert people(gate, "asked") == {"Ann"}
    decide(gate, by=ann(team))
    fanned()
    assert people(gate, "my_run") == {starter.first_name}


def test_a_later_stage_is_asked_when_its_turn_comes() -> None:
    """Nobody of it ever heard of the gate: only its opening, an escalation or a colleague made anybody be asked."""
    support, legal = make_team(), make_team("Legal")
    first, second, lee = ann(support), bob(support), make_user("Lee Legal", legal)
    asked = ((2, support), (1, legal))
    stages = [{"roles": [{"quorum": number, "groups": [team.pk], "people": []}]} for number, team in asked]
    gate = make_gate(policy=make_policy(support, stages=stages, deadline=4 * HOUR))
    fanned()
    assert people(gate, "asked") == {"Ann", "Bob"}
    decide(gate, by=first)
    fanned()
    assert people(gate, "asked") == {"Ann", "Bob"}
    decide(gate, by=second)
    fanned()
    assert people(gate, "asked") == people(gate, "reminder") == {"Ann", "Bob", "Lee"}
    decide(gate, by=lee)
    fanned()
    assert rows(gate)[-1][0] != "asked"


def test_people_are_told_as_they_chose() -> None:
    team = make_team()
    chooses(ann(team), choices={"asked": {"email": "high"}})
    chooses(bob(team), choices={"asked": {"email": "never"}})
    chooses(reader := mira(team), choices={"decided": {"email": "low"}})
    low, high = make_gate(team=team), make_gate(team=team, card=make_card(risk="high"))
    fanned()
    assert people(low, "asked") == {"Mira"}
    assert people(high, "asked") == {"Ann", "Mira"}
    decide(high, by=make_user("Nina", team))
    fanned()
    assert people(high, "decided") == {"Mira"}
    own = make_gate(team=team)
    decide(own, by=reader)
    fanned()
    assert people(own, "asked") == people(own, "decided") == set(), "nobody is told of what they did themselves"


def test_a_deadline_that_moves_takes_its_reminders_along_in_as_many_statements_for_many_as_for_one() -> None:
    team = make_team()
    ann(team), mira(team)
    policy = make_policy(team, name="default", deadline=4 * HOUR)

    def moved(number: int) -> int:
        gates = [make_gate(policy=policy, team=team) for _ in range(number)]
        fanned()
        for at, gate in enumerate(gates):
            assert gate.deadline is not None
            change_gate(gate, deadline=gate.deadline + (4 + 2 * at) * HOUR)
        with sent() as statements:
            fan_out.fan_out()
        for at, gate in enumerate(gates):
            assert gate.deadline is not None
            due = [each.next_attempt_at for each in Message.objects.filter(gate=gate, kind="reminder")]
            assert due == [gate.deadline + (2 + 1.5 * at) * HOUR] * 2
        return len(statements)

    assert moved(1) == moved(5)


def test_whoever_is_mentioned_is_told_but_not_by_themself() -> None:
    team = make_team()
    reviewer, colleague = ann(team), bob(team)
    gate = make_gate(team=team)
    for users in ("ann", {"a": 1}, [None, "7", 0, 999_999_999], [reviewer.pk, colleague.pk]):
        gate.say("gate.mentioned", by=actors.of_user(reviewer), data={"users": users})
    fanned()
    assert people(gate, "mention") == {"Bob"}


def test_whose_approval_an_edit_ends_is_asked_again_and_told_why() -> None:
    """Only the page said so: whoever had approved was never told that their approval no longer counted."""
    team = make_team()
    first, editor = ann(team), bob(team)
    mira(team)
    gate = make_gate(policy=make_policy(team, name="default", quorum=3), team=team)
    decide(gate, by=first)
    fanned()
    Message.objects.all().delete()
    decide(gate, by=editor, verdict="edit", arguments=edit_amount(gate, "80.00"))
    fanned()
    [notice] = Message.objects.all()
    assert (notice.kind, notice.user) == ("asked", first)
    assert "your earlier decision on this gate" in message_of(notice).reason


def test_whoever_a_gate_is_handed_to_is_told_though_they_were_asked_before() -> None:
    """They heard nothing: everybody who may decide had been asked as it opened."""
    team, leads = make_team(), make_team("Leads")
    giver, taker, lead = ann(team), bob(team), mira(leads)
    gate = make_gate(team=team)
    fanned()
    Message.objects.filter(gate=gate).update(status="sent", next_attempt_at=None)
    giver.user_permissions.add(Permission.objects.get(codename="add_reviewers"))
    for to, told, kind, words in (
        (taker, taker, "asked", "Ann Okafor asked you to act on this gate"),
        (leads, lead, "asked", "because you may decide this gate"),
    ):
        reassign(gate, to=to, reason="Too much for us.", by=giver)
        fanned()
        [notice] = Message.objects.pending()
        assert (notice.kind, notice.user) == (kind, told)
        assert words in message_of(notice).reason
        Message.objects.pending().delete()


def test_whose_claim_is_taken_over_is_told_by_whom_until_the_gate_ends() -> None:
    """Only the open page said so: whoever was elsewhere went on working on it."""
    team = make_team()
    holder, taker = ann(team), bob(team)
    gate = make_gate(team=team)
    claims.claim(gate, by=holder)
    fanned()
    claims.take_over(gate, by=taker)
    claims.take_over(gate, by=taker)
    fanned()
    [notice] = Message.objects.filter(kind="handover")
    assert notice.user == holder
    message = message_of(notice)
    assert message.subject.startswith("Bob Lindqvist took over what you had claimed: ")
    assert "because you had claimed this gate" in message.reason
    decide(gate, by=taker)
    assert dropped_as(notice) == ["decided"]


def test_whoever_decides_for_somebody_who_is_away_is_told_from_when_to_when() -> None:
    """They had to find out by themselves, on the page of times away or in their inbox."""
    team = make_team()
    person, delegate = ann(team), bob(team)
    Profile.objects.create(user=delegate, zone="Asia/Tokyo")
    begins = (timezone.now() + dt.timedelta(days=2)).replace(hour=23, minute=30)
    made = away.make(person, starts=begins, ends=begins + HOUR, delegate=delegate)
    away.make(person, starts=begins + 2 * HOUR, ends=begins + 3 * HOUR)
    fanned()
    [notice] = Message.objects.all()
    assert (notice.kind, notice.user, notice.gate_id) == ("handover", delegate, None)
    message = message_of(notice)
    assert message.subject == "You decide for Ann Okafor while they are away"
    assert [fact.value[-18:] for fact in message.facts] == ["08:30 (Asia/Tokyo)", "09:30 (Asia/Tokyo)"]
    away.end(made, by=person)
    assert dropped_as(notice) == ["back"]


def test_of_two_who_read_the_same_events_one_writes_and_what_dies_before_its_commit_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both had read the cursor: the second wrote everything a second time."""
    team = make_team()
    ann(team)
    gate = make_gate(team=team)
    before = NoticeCursor.current()
    monkeypatch.setenv("HOLDPOINT_CRASH", "notices_written:fail")
    with pytest.raises(RuntimeError):
        fan_out.fan_out()
    assert rows(gate) == []
    monkeypatch.delenv("HOLDPOINT_CRASH")
    assert fan_out.fan_out() > 0
    after = NoticeCursor.current()
    assert after > before
    assert not NoticeCursor.move(before, after)
    assert len(rows(gate)) == 1


def test_a_digest_is_written_when_it_is_due_only_once_and_to_nobody_who_is_switched_off() -> None:
    """That one stayed due for ever: each slice found work, rang for the next one, and a worker never rested."""
    reader = ann(make_team())
    now = dt.datetime.now(dt.UTC)
    row = chooses(reader, digest_at=[dt.time(9)], digest_days=list(range(7)), digest_next=now - HOUR)
    assert digest.write_due() == 1
    assert digest.write_due() == 0
    row.refresh_from_db()
    assert row.digest_next is not None
    assert row.digest_next > now
    assert Message.objects.filter(user=reader, kind="digest").count() == 1
    Message.objects.all().delete()
    NotificationPreference.objects.filter(pk=row.pk).update(digest_next=now - HOUR)
    User.objects.filter(pk=reader.pk).update(is_active=False)
    fanned()
    digest.write_due()
    assert delivering.waiting() == []
    assert not Message.objects.filter(user=reader).exists()


class Board:
    """A team's place, whose messages are changed when the gate ends."""

    name, label, updates, at_once = "board", "board", True, 10
    there: dict[int, int] = {}

    def unfit(self) -> str:
        return ""

    def addresses(self, *, people: object = (), teams: object = ()) -> list[NoticeAddress]:
        assert isinstance(teams, set | tuple | list)
        return [
            NoticeAddress(channel="board", value="x", label="#approvals", id=self.there[team], team=team)
            for team in teams
            if team in self.there
        ]

    def session(self) -> object:
        raise AssertionError("nothing is sent here")


def test_the_place_of_a_team_that_was_added_is_told_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that was escalated to the directors was told in their own mailboxes alone, and not in their channel."""
    team, directors, others = make_team(), make_team("Directors"), make_team("Others")
    board, teams = Board(), (team, directors, others)
    made = {each.pk: ChannelAddress.objects.add("board", "x", label="#board", team=each).pk for each in teams}
    board.there = made
    monkeypatch.setitem(channel._channels, "board", board)
    policy = make_policy(team, name="default")
    Policy.objects.filter(pk=policy.pk).update(escalation=[{"team": directors.pk, "after": 3600, "extend": None}])
    gate = make_gate(policy=Policy.objects.get(pk=policy.pk), team=team)
    fanned()
    assert escalate(Escalation.objects.get(gate=gate))
    fanned()
    decide(gate, by=ann(team))
    fanned()
    told = Message.objects.filter(gate=gate, channel="board").order_by("pk")
    assert [(each.kind, each.team) for each in told][:2] == [("asked", team), ("asked", directors)]
    assert {(each.kind, each.team) for each in told[2:]} == {("decided", team), ("decided", directors)}
