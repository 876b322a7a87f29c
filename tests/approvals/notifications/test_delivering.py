"""What is sent, when it is not, and what a failure or a death in the middle leaves."""

from __future__ import annotations

import datetime as dt
import threading
from typing import Any

import pytest
import redis
from django.db.models.functions import Now

from approvals.decisions.undo_window import take_back
from approvals.gates import closing, remarks
from approvals.models import ChannelState, Message, NotificationPreference
from approvals.models.notifications import MessageEnd
from approvals.notifications import delivering, log
from approvals.notifications.building import NoticeMessage
from approvals.notifications.channel import NoticeAddress, Receipt
from approvals.notifications.email import EmailSession
from checkpoints import crash_points
from checkpoints.actors import SYSTEM
from checkpoints.events import event_log
from tests.approvals.assignments.test_away import lend
from tests.approvals.decisions.undoing.windows import make_held
from tests.conftest import Starter
from tests.factories import ann, bob, decide, make_card, make_gate, make_policy, make_run, make_team, make_user, mira
from tests.harness.racing_threads import race
from tests.harness.waiting import until

from .mail_server import MailServer, text_of
from .told import abandoned, due, fanned, rows

HOUR = dt.timedelta(hours=1)


def send() -> int:
    return delivering.deliver("email", seconds=5.0)


def asked(**options: Any) -> Message:
    """One notice that is due, for Ann."""
    team = make_team()
    ann(team)
    gate = make_gate(team=team, **options)
    fanned()
    return Message.objects.get(gate=gate, kind="asked")


def test_what_was_decided_or_withdrawn_meanwhile_is_sent_to_nobody_and_the_log_says_which(mails: MailServer) -> None:
    """The gate's end was not read yet when the mail was due."""
    notice = asked()
    assert notice.gate
    decide(notice.gate, by=bob(notice.gate.team))
    gone = asked()
    assert gone.gate
    closing.withdraw(gone.gate, by=SYSTEM, reason="no need")
    send()
    assert mails.mails == []
    assert rows(notice.gate) == [("asked", "Ann", "dropped", "decided")]
    assert rows(gone.gate) == [("asked", "Ann", "dropped", "withdrawn")]
    assert gone.user
    assert [each.why for each in log.of_person(gone.user)] == ["it was withdrawn before"]


@pytest.mark.parametrize(("voter", "word"), [("delegate", "voted"), ("person", "not_asked")])
def test_neither_of_two_with_one_vote_is_reminded_once_it_was_given(mails: MailServer, voter: str, word: str) -> None:
    """Ann was told to decide what Bo had decided for her, and Bo what she had decided herself, and could not."""
    team = make_team()
    person, other, third = ann(team), make_user("Bo Elsewhere"), mira(team)
    lend(person, other)
    gate = make_gate(policy=make_policy(team, name="default", quorum=2, deadline=4 * HOUR), team=team)
    fanned()
    send()
    decide(gate, by=other if voter == "delegate" else person)
    due(kind="reminder")
    send()
    found = Message.objects.filter(gate=gate, kind="reminder").values_list("user", "status", "word")
    assert set(found) == {(person.pk, "dropped", "voted"), (other.pk, "dropped", word), (third.pk, "sent", "")}
    assert mails.recipients[-1] == third.email
    assert mails.mails[-1]["Subject"].startswith("Re: ")


def test_nobody_is_asked_while_a_decision_may_still_be_undone(mails: MailServer) -> None:
    """A mail said "Still waiting for a decision" though somebody had decided; the inbox showed nothing to do."""
    team = make_team()
    reviewer = ann(team)
    gate = make_held(team, deadline=4 * HOUR)
    fanned()
    Message.objects.filter(kind="asked").delete()
    decider = bob(team)
    decide(gate, by=decider)
    due(kind="reminder")
    send()
    assert rows(gate) == [("reminder", "Ann", "pending", "settling")]
    take_back(gate, by=decider)
    due(kind="reminder")
    send()
    assert rows(gate) == [("reminder", "Ann", "sent", "")]
    assert mails.recipients == [reviewer.email]


@pytest.mark.parametrize(
    ("lost", "word"),
    [("team", "not_asked"), ("account", "no_address"), ("address", "no_address"), ("wish", "not_wanted")],
)
def test_whoever_may_or_wants_no_more_is_told_nothing(mails: MailServer, lost: str, word: str) -> None:
    notice = asked()
    person = notice.user
    assert person
    if lost == "team":
        person.groups.clear()
    elif lost == "wish":
        NotificationPreference.objects.create(user=person, choices={"asked": {"email": "never"}})
    else:
        person.email = "" if lost == "address" else person.email
        person.is_active = lost != "account"
        person.save()
    send()
    notice.refresh_from_db()
    assert mails.mails == []
    assert (notice.status, notice.word) == ("dropped", word)


def test_whoever_may_see_the_gate_no_more_is_not_told_how_it_goes_on(mails: MailServer) -> None:
    """A mention that waited for the end of quiet hours told its gate's title to somebody who had left the team."""
    team = make_team()
    gone, stays, other = ann(team), mira(team), bob(team)
    gate = make_gate(team=team, started_by=gone)
    remarks.remark(gate, by=other, text=f"@{gone.username} @{stays.username} please look", key="one")
    fanned()
    Message.objects.exclude(kind="mention").delete()
    gone.groups.clear()
    send()
    assert mails.recipients == [stays.email]
    decide(gate, other)
    fanned()
    send()
    assert rows(gate) == [
        ("mention", "Ann", "dropped", "not_seen"), ("mention", "Mira", "sent", ""),
        ("my_run", "Ann", "dropped", "not_seen"),
    ]  # fmt: skip
    run = make_run(team=team, started_by=stays)
    event_log.record("run.failed", subject=f"run:{run.pk}", by=SYSTEM, run=run)
    fanned()
    stays.groups.clear()
    send()
    assert Message.objects.get(run=run.pk, gate=None).word == "not_seen"


def test_quiet_hours_put_it_off_and_what_is_critical_passes(mails: MailServer) -> None:
    team = make_team()
    every_day_but_one = [day for day in range(7) if day != (dt.datetime.now(dt.UTC).weekday() + 3) % 7]
    NotificationPreference.objects.create(user=ann(team), quiet_days=every_day_but_one)
    calm, critical = make_gate(team=team), make_gate(team=team, card=make_card(risk="critical"))
    fanned()
    send()
    assert rows(critical) == [("asked", "Ann", "sent", "")]
    assert rows(calm) == [("asked", "Ann", "pending", "quiet")]
    later = Message.objects.get(gate=calm)
    assert later.next_attempt_at is not None
    assert later.next_attempt_at - dt.datetime.now(dt.UTC) > dt.timedelta(days=1)
    assert later.attempts == 0


def test_a_refusal_for_now_is_tried_again_as_often_as_is_set_and_one_for_good_is_not(
    mails: MailServer, settings: Any
) -> None:
    first = asked()
    mails.rcpt.append("451 4.3.0 try later")
    send()
    first.refresh_from_db()
    assert (first.status, first.word, first.attempts) == ("pending", "smtp_451", 1)
    due()
    mails.rcpt.append("550 5.1.1 nobody")
    send()
    first.refresh_from_db()
    assert (first.status, first.word) == ("failed", "smtp_550")
    assert ChannelState.objects.get(channel="email").failures == 0  # the server is there
    settings.HOLDPOINT_NOTICES_RETRIES = [1.0]
    last = asked()
    for _ in range(2):
        mails.rcpt.append("451 4.3.0 try later")
        due()
        send()
    last.refresh_from_db()
    assert (last.status, last.attempts) == ("failed", 2)


def test_a_server_that_is_away_makes_the_channel_rest(mails: MailServer) -> None:
    asked()
    mails.stop()
    send()
    state = ChannelState.objects.get(channel="email")
    assert (state.failures, state.word) == (1, "refused")
    assert state.failing_since is not None
    assert state.paused_until is not None
    Message.objects.pending().update(next_attempt_at=Now() - HOUR)
    assert send() == 0
    assert delivering.waiting() == []
    again = MailServer(mails.port)
    ChannelState.objects.update(paused_until=Now() - HOUR)
    # On a busy machine the checks alone take longer than a slice: nothing was ever sent.
    assert delivering.deliver("email", seconds=0.0) == 1
    state.refresh_from_db()
    assert len(again.mails) == 1
    assert (state.failures, state.word) == (0, "")
    again.stop()


def test_two_at_once_send_each_mail_once(mails: MailServer) -> None:
    team = make_team()
    for number in range(8):
        make_user(f"Reviewer{number}", team)
    make_gate(team=team)
    fanned()

    def sender() -> None:
        for _ in range(4):
            ChannelState.objects.update(busy_until=None)  # as if every lease had ended
            send()

    assert race([sender, sender]) == [None, None]
    assert len(mails.recipients) == len(set(mails.recipients)) == 8
    assert not Message.objects.pending().exists()


@pytest.mark.parametrize(("point", "mailed", "tried"), [("messages_taken", 0, 1), ("messages_sent", 1, 2)])
def test_what_dies_in_the_middle_is_sent_again_under_the_same_id(
    mails: MailServer, monkeypatch: pytest.MonkeyPatch, point: str, mailed: int, tried: int
) -> None:
    notice = asked()
    monkeypatch.setenv("HOLDPOINT_CRASH", f"{point}:fail")
    with pytest.raises(RuntimeError):
        send()
    monkeypatch.delenv("HOLDPOINT_CRASH")
    notice.refresh_from_db()
    assert notice.status == "pending"
    assert len(mails.mails) == mailed
    assert send() == 0  # its lease still holds
    abandoned()
    assert send() == 1
    assert len({mail["Message-ID"] for mail in mails.mails}) == 1
    notice.refresh_from_db()
    assert (notice.status, notice.attempts) == ("sent", tried)


def test_a_sender_that_was_too_slow_records_nothing(mails: MailServer) -> None:
    asked()
    [slow] = Message.objects.take("email", 1)
    abandoned()
    [fast] = Message.objects.take("email", 1)
    assert Message.objects.end([MessageEnd(slow, "failed", "timeout")]) == set()
    assert Message.objects.end([MessageEnd(fast, "sent")]) == {fast.pk}


def test_while_nothing_can_be_recorded_no_more_is_sent(
    mails: MailServer, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that had been taken was sent on while the database was away, and sent again once it was back."""
    settings.HOLDPOINT_NOTICES_CONNECTIONS = 1
    monkeypatch.setattr(crash_points, "_listeners", [])
    reader = ann(make_team())
    many = [Message.objects.create(user=reader, kind="test", channel="email") for _ in range(20)]
    mails.held = held = threading.Event()

    def lost(name: str, *_of: Any) -> None:
        if name == "messages_sent":
            held.set()
            raise RuntimeError("the database is away")

    crash_points.listen(lost)
    with pytest.raises(RuntimeError):
        send()
    assert len(mails.mails) < len(many)


def test_a_message_that_ends_its_sender_each_time_is_given_up(mails: MailServer, settings: Any) -> None:
    """It was taken again each two minutes, for ever, and whatever was sent along with it was sent again each time."""
    notice = asked()
    for _ in range(len(settings.HOLDPOINT_NOTICES_RETRIES) + 1):
        Message.objects.take("email", 25)
        abandoned()
    send()
    assert mails.mails == []
    assert notice.gate
    assert rows(notice.gate) == [("asked", "Ann", "failed", "lost")]


def test_what_is_still_to_be_told_outlives_the_days_for_which_notices_are_kept(settings: Any) -> None:
    """A gate that was open for longer lost its reminder, and asked everybody anew when it went to the next team."""
    settings.HOLDPOINT_NOTICES_KEEP_DAYS = 7
    team = make_team()
    ann(team)
    gate = make_gate(policy=make_policy(team, name="default", deadline=20 * 24 * HOUR), team=team)
    fanned()
    Message.objects.filter(gate=gate, kind="asked").update(status="sent", next_attempt_at=None)
    Message.objects.filter(gate=gate).update(created_at=Now() - dt.timedelta(days=8))
    old, new = asked(), asked()
    Message.objects.filter(pk__in=[old.pk, new.pk]).update(status="sent", next_attempt_at=None)
    for each in (old, new):
        assert each.gate
        decide(each.gate, by=bob(each.gate.team))
    Message.objects.filter(pk=old.pk).update(created_at=Now() - dt.timedelta(days=8))
    log.clear()
    assert not Message.objects.filter(pk=old.pk).exists()
    assert Message.objects.filter(pk=new.pk).exists()
    assert rows(gate) == [("asked", "Ann", "sent", ""), ("reminder", "Ann", "pending", "")]
    waited = Message.objects.create(user=ann(team), kind="test", channel="none", next_attempt_at=Now() - 8 * 24 * HOUR)
    Message.objects.filter(pk=waited.pk).update(created_at=Now() - dt.timedelta(days=8))
    log.clear()
    assert not Message.objects.filter(pk=waited.pk).exists(), "by a channel that is not there any more"


def test_many_questions_at_once_and_a_digest_are_one_mail_that_lists_them(mails: MailServer) -> None:
    """An agent that opened thirty gates sent each reviewer thirty mails."""
    team = make_team()
    reviewer, other = ann(team), bob(team)
    empty = Message.objects.create(user=reviewer, kind="digest", channel="email")
    send()
    assert mails.mails == [], "nothing waits"
    gates = [make_gate(team=team) for _ in range(5)]
    fanned()
    send()
    assert len(mails.mails) == 10, "few come one by one"
    digest = Message.objects.create(user=reviewer, kind="digest", channel="email")
    send()
    assert mails.mails[-1]["Subject"] == "5 gates wait for your decision"
    assert all(f"/gates/{gate.pk}/" in text_of(mails.mails[-1]) for gate in gates)
    found = Message.objects.filter(pk__in=[empty.pk, digest.pk]).order_by("pk").values_list("status", "word")
    assert list(found) == [("dropped", "nothing"), ("sent", "")]
    mails.mails.clear()
    mails.recipients.clear()
    gates = [make_gate(team=team) for _ in range(8)]
    urgent = make_gate(team=team, card=make_card(risk="critical"))
    fanned()
    mails.rcpt.extend(["450 Try later"] * 4)
    send()
    assert mails.mails == []
    assert Message.objects.pending().count() == 18, "nothing was lost"
    due()
    send()
    assert sorted(mails.recipients) == sorted([reviewer.email, other.email] * 2)
    [first, second] = [each for each in mails.mails if each["Subject"] == "8 gates wait for your decision"]
    assert first["Message-ID"] != second["Message-ID"]
    for gate in gates:
        assert f"/gates/{gate.pk}/" in text_of(first)
        assert rows(gate) == [("asked", "Ann", "sent", ""), ("asked", "Bob", "sent", "")]
        assert set(Message.objects.filter(gate=gate).values_list("reference", flat=True)) == {""}
    assert rows(urgent) == [("asked", "Ann", "sent", ""), ("asked", "Bob", "sent", "")]


def test_a_row_that_cannot_be_read_or_sent_keeps_no_other_message_waiting(
    mails: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first such row ended every slice of the channel: nobody was told anything any more."""
    broken, unsent, other = asked(), asked(), asked()
    assert broken.user
    NotificationPreference.objects.create(user=broken.user, choices={"asked": "low"})
    sending = EmailSession.send

    def faulty(session: EmailSession, message: NoticeMessage, to: NoticeAddress, **more: Any) -> Receipt:
        if message.gate == unsent.gate_id:
            raise ZeroDivisionError
        return sending(session, message, to, **more)

    monkeypatch.setattr(EmailSession, "send", faulty)
    send()
    assert len(mails.mails) == 1
    for each in (broken, unsent, other):
        each.refresh_from_db()
    assert [each.status for each in (broken, unsent, other)] == ["pending", "pending", "sent"]
    assert broken.word == unsent.word == "fault"
    assert broken.next_attempt_at
    assert broken.next_attempt_at > broken.created_at


@pytest.mark.long
@pytest.mark.parametrize(("place", "arrived"), [("messages_sent", 2), ("messages_taken", 1), ("notices_written", 1)])
def test_a_worker_killed_in_the_middle_loses_nothing_and_a_second_copy_has_the_same_id(
    place: str, arrived: int, mails: MailServer, celery_worker: Starter, sweeper: Starter, redis_url: str
) -> None:
    redis.Redis.from_url(redis_url).flushall()  # the worker is to die with its first message
    to_here = {"EMAIL_URL": f"smtp://127.0.0.1:{mails.port}"}
    dies = celery_worker("-c", "1", "--pool", "solo", env={**to_here, "HOLDPOINT_CRASH": f"{place}:kill"})
    sweeper()
    team = make_team()
    ann(team)
    gate = make_gate(team=team)
    until(lambda: not dies.alive, what="the worker was killed")
    abandoned()
    celery_worker("-c", "1", env=to_here)
    # The sweeper first ends what thousands of other tests left open, of which people are told too.
    until(lambda: [each[2] for each in rows(gate)] == ["sent"], within=240, what="another worker sent it")
    sent = [mail for mail in mails.mails if f"/gates/{gate.pk}/" in text_of(mail)]
    assert len(sent) == arrived
    assert len({mail["Message-ID"] for mail in sent}) == 1
