"""Checks notices that are due, and builds their messages: what is not needed any more, or comes too early, is not sent.

The checks are made now and not when the notice was written, as everything may have changed since: the gate is decided,
the person has voted or may decide no more, chose otherwise, or sleeps.

It also computes when a message that did not arrive is sent again. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import structlog
from django.db.models import F, QuerySet
from django.utils import timezone

from approvals.gates.reading import with_reviewers
from approvals.models import Decision, Delegation, Gate, Message, NotificationPreference, Outcome, Proposal
from approvals.models.gate import WAYS
from approvals.models.notifications.message import MessageEnd, fields_of
from approvals.policy import authority
from checkpoints.access.permissions import Ways, shown_in, teams_of
from checkpoints.models import Event, Run, run

from . import account, building, digest, wanted_when
from .building import NoticeKind, NoticeMessage, Urgency
from .channel import NoticeAddress, NoticeChannel
from .fan_out import HANDED, LAPSED, NOT_RUN, STANDS_IN, ToldEvent

ASKING = (NoticeKind.ASKED, NoticeKind.REMINDER)
AT_ONCE = (NoticeKind.TEST, NoticeKind.RESET, NoticeKind.ACCOUNT)  # no quiet time keeps them back
FEW = 5  # questions that one address gets one by one; more that are due together become a list
LISTED = 25  # questions of one list; each channel shows so many
log = structlog.get_logger()


@dataclass(frozen=True)
class Outgoing:
    """One message that is to be sent now. `others`: the notices that it settles beside its own, as a list does.

    `message`: a NoticeMessage, or the body of one that was written whole; that has no address but its channel.
    """

    notice: Message
    message: Any
    to: NoticeAddress | None = None
    earlier: str = ""
    others: tuple[Message, ...] = ()

    @property
    def notices(self) -> list[Message]:
        """Return the notices that it settles."""
        return [self.notice, *self.others]

    @property
    def key(self) -> str:
        """Return the key of the message: a list of other gates has another, or a reader would not see the second."""
        if not self.others:
            return self.notice.key
        listed = ",".join(str(each.pk) for each in self.notices)
        return f"{self.notice.key}.{hashlib.sha256(listed.encode()).hexdigest()[:16]}"


@dataclass
class PreparedNotices:
    """The notices that are due, each with what becomes of it."""

    outgoing: list[Outgoing] = field(default_factory=list)
    ends: list[MessageEnd] = field(default_factory=list)  # of those that are not sent now
    faults: list[Message] = field(default_factory=list)  # those of which no message could be built

    def drop(self, notice: Message, word: str) -> None:
        self.ends.append(MessageEnd(notice, Message.Status.DROPPED, word))

    def put_off(self, notice: Message, word: str, until: datetime, now: datetime) -> None:
        pause = max((until - now).total_seconds(), 1.0)
        self.ends.append(MessageEnd(notice, Message.Status.PENDING, word, pause=pause))


def prepare(channel: NoticeChannel, taken: Sequence[Message]) -> PreparedNotices:
    """Check these notices and build the messages of those to be sent, in a fixed number of statements."""
    there, done, now = _Facts.of(channel, taken), PreparedNotices(), timezone.now()
    for notice in taken:
        try:
            _check(notice, channel, there, done, now)
        except Exception:  # a row that cannot be read keeps no other message waiting
            log.exception("notice.not_built", **fields_of(notice))
            done.faults.append(notice)
    done.outgoing = list(_listed(done.outgoing))
    return done


def _check(notice: Message, channel: NoticeChannel, there: _Facts, done: PreparedNotices, now: datetime) -> None:
    to = there.address(notice)
    if to is None:
        done.drop(notice, "no_account" if notice.kind == NoticeKind.RESET else "no_address")
    elif (word := there.needless(notice, channel)) != "":
        done.drop(notice, word)
    elif (until := there.settles(notice)) is not None:
        done.put_off(notice, "settling", until, now)
    elif (until := there.quiet(notice, now)) is not None:
        done.put_off(notice, "quiet", until, now)
    elif (message := there.message(notice, now)) is None:
        done.drop(notice, "nothing")
    else:
        done.outgoing.append(Outgoing(notice, message, to, there.earlier(notice)))


def _listed(outgoing: Sequence[Outgoing]) -> Iterator[Outgoing]:
    """Yield the messages, with many questions to one address as lists. What is urgent stays a message of its own."""
    asked: dict[NoticeAddress | None, list[Outgoing]] = {}
    for each in outgoing:
        if each.message.kind == NoticeKind.ASKED and each.message.urgency < Urgency.HIGH:
            asked.setdefault(each.to, []).append(each)
        else:
            yield each
    for to, found in asked.items():
        for start in range(0, len(found), LISTED):
            some = found[start : start + LISTED]
            if len(some) <= FEW:
                yield from some
            else:
                reason = "You get one message for all of these, as they were asked at about the same time."
                message = building.of_many(NoticeKind.ASKED, [each.message for each in some], reason=reason)
                yield Outgoing(some[0].notice, message, to, others=tuple(each.notice for each in some[1:]))


@dataclass
class _Facts:
    gates: dict[int, Gate]
    standing: dict[int, Proposal]
    outcomes: dict[int, Outcome]
    deciders: dict[int, set[int]]
    readers: set[tuple[int, int]]  # (gate, person) who may see it, of those who are told and not asked
    run_readers: set[tuple[int, int]]  # the same by run, of messages about runs
    voted: set[tuple[int, int]]  # (gate, person) whose vote for the current proposal counts, or one in their name
    settings: dict[int, NotificationPreference]
    addresses: dict[tuple[int | None, int | None, int | None], NoticeAddress]  # by person, team and row
    references: dict[tuple[int, str, int | None, int | None], str]
    events: dict[int, Event]
    runs: dict[int, Run]
    away: dict[int, Delegation]  # by the event that it was made by: the times away that are not over
    built: dict[tuple[int, str, int, str], NoticeMessage] = field(default_factory=dict)

    @classmethod
    def of(cls, channel: NoticeChannel, taken: Sequence[Message]) -> _Facts:
        named = {each.gate_id for each in taken if each.gate_id}
        gates = {gate.pk: gate for gate in with_reviewers(named)}
        asking = [gates[each.gate_id] for each in taken if each.gate_id in gates and each.kind in ASKING]
        people = {each.user_id for each in taken if each.user_id}
        told_of = {each.gate_id for each in taken if each.gate_id in gates and each.kind not in ASKING}
        teams = {each.team_id for each in taken if each.team_id}
        current = Proposal.objects.filter(gate__in=gates, number=F("gate__proposal"))
        votes = Decision.objects.filter(gate__in=gates, counts=True, proposal__number=F("gate__proposal"))
        voted = _voters(votes) if asking else set()
        told = [each.event for each in taken if each.event]
        runs = [each.run for each in taken if each.run]
        events = Event.objects.in_bulk(told) if told else {}
        return cls(
            gates=gates,
            standing={each.gate_id: each for each in current},
            outcomes={each.gate_id: each for each in Outcome.objects.filter(gate__in=gates)},
            deciders=authority.may_decide(asking, used=voted) if asking else {},
            readers=_readers(Gate.objects.filter(pk__in=told_of), WAYS, people) if told_of and people else set(),
            run_readers=_readers(Run.objects.filter(pk__in=runs), run.WAYS, people) if runs else set(),
            voted=voted,
            settings=NotificationPreference.objects.in_bulk(people),
            addresses={(a.person, a.team, a.id): a for a in channel.addresses(people=people, teams=teams)},
            references=Message.objects.references(gates),
            events=events,
            runs={each.pk: each for each in Run.objects.filter(pk__in=runs).select_related("plan")} if runs else {},
            away=_away([each for each in events.values() if each.kind == STANDS_IN]),
        )

    def address(self, notice: Message) -> NoticeAddress | None:
        return self.addresses.get((notice.user_id, notice.team_id, notice.address_id))

    def earlier(self, notice: Message) -> str:
        return self.references.get((notice.gate_id or 0, notice.channel, notice.user_id, notice.address_id), "")

    def needless(self, notice: Message, channel: NoticeChannel) -> str:
        """Say by a code why a notice is not needed any more; "" where it is."""
        kind, gate = NoticeKind(notice.kind), self.gates.get(notice.gate_id or 0)
        settings = self.settings.get(notice.user_id or 0)
        if notice.gate_id and gate is None:
            return "removed"
        if gate is not None and gate.status != Gate.Status.OPEN and self._asks_to_act(notice):
            return gate.status
        if gate is None and kind == NoticeKind.HANDOVER and notice.event not in self.away:
            return "back"
        if gate is not None and kind in ASKING:
            if gate.deadline and gate.deadline <= timezone.now():
                return "expired"
            if (gate.pk, notice.user_id) in self.voted:
                return "voted"
            if notice.user_id and notice.user_id not in self.deciders[gate.pk]:
                return "not_asked"
        elif notice.user_id and not self._sees(notice):
            return "not_seen"
        if notice.user_id is None or kind not in wanted_when.CHOSEN:
            return ""
        if wanted_when.wants(settings, kind, notice.channel, gate.risk if gate else "medium"):
            return ""
        return "" if kind == NoticeKind.DECIDED and channel.updates and self.earlier(notice) else "not_wanted"

    def _asks_to_act(self, notice: Message) -> bool:
        event = self.events.get(notice.event or 0)
        return notice.kind in (*ASKING, NoticeKind.HANDOVER) or (event is not None and event.kind == HANDED)

    def _sees(self, notice: Message) -> bool:
        """Tell whether the person may see what the notice tells of."""
        if notice.gate_id:
            return (notice.gate_id, notice.user_id) in self.readers
        return not notice.run or (notice.run, notice.user_id) in self.run_readers

    def settles(self, notice: Message) -> datetime | None:
        """Return when a decision takes effect that may be undone until then, where the notice asks for one."""
        gate = self.gates.get(notice.gate_id or 0)
        return gate.settles_at if gate is not None and notice.kind in ASKING else None

    def quiet(self, notice: Message, now: datetime) -> datetime | None:
        """Return the end of the person's quiet time where it keeps this notice back."""
        if notice.kind in AT_ONCE or notice.user_id is None:
            return None
        gate = self.gates.get(notice.gate_id or 0)
        critical = gate is not None and gate.risk == "critical" and notice.kind in ASKING
        return wanted_when.quiet_until(self.settings.get(notice.user_id), now, critical=critical)

    def message(self, notice: Message, now: datetime) -> NoticeMessage | None:
        """Build the notice's message; None where there is nothing to tell any more."""
        kind = NoticeKind(notice.kind)
        if kind == NoticeKind.DIGEST:
            return digest.message(notice.user) if notice.user else None
        if kind in AT_ONCE:
            return self._of_account(kind, notice)
        gate = self.gates.get(notice.gate_id or 0)
        if gate is None and kind == NoticeKind.HANDOVER:
            to = self.address(notice)
            return building.of_time_away(self.away[notice.event or 0], to.zone) if to else None
        if gate is None:
            failed = self.runs.get(notice.run or 0)
            return building.of_run(failed) if failed else None
        event = self.events.get(notice.event or 0)
        named = event is not None and notice.user_id in ToldEvent(event, gate.pk).users
        handed = event is not None and event.kind == HANDED and named
        tells = handed or kind in (NoticeKind.MENTION, NoticeKind.HANDOVER)
        by = event.actor_name if event and tells and building.may_name(gate) else ""
        stuck = event is not None and event.kind == NOT_RUN
        again = event is not None and event.kind in LAPSED
        key = (gate.pk, kind, notice.urgency, f"{by}{stuck}{again}{handed}")
        if key not in self.built:
            told = self.outcomes.get(gate.pk) if kind not in ASKING else None
            built = building.of_gate(
                gate, self.standing[gate.pk], kind, urgency=Urgency(notice.urgency), outcome=told, by=by, stuck=stuck,
                handed=handed,
            )  # fmt: skip
            self.built[key] = replace(built, reason=building.reason_for(kind, gate, again=again, handed=handed, by=by))
        return self.built[key]

    def _of_account(self, kind: NoticeKind, notice: Message) -> NoticeMessage | None:
        user, event = notice.user, self.events.get(notice.event or 0)
        if kind == NoticeKind.RESET:
            return account.of_new_password(user) if user and user.has_usable_password() else None
        if kind == NoticeKind.ACCOUNT:
            return account.of_change(user, event) if user and event else None
        return account.test()


def _voters(votes: QuerySet[Decision]) -> set[tuple[int, int]]:
    """Return each (gate, person) who voted or in whose name somebody did."""
    rows = votes.values_list("gate_id", "user_id", "on_behalf_of_id")
    return {(gate, person) for gate, *both in rows for person in both if person}


def _away(made: Sequence[Event]) -> dict[int, Delegation]:
    """Return the times away that are not over, by the event of each."""
    by_number = {int(each.subject.partition(":")[2]): each.pk for each in made}
    found = Delegation.objects.standing().select_related("person").filter(pk__in=by_number) if made else ()
    return {by_number[each.pk]: each for each in found}


def _readers(rows: QuerySet[Any], through: Ways, people: Set[int]) -> set[tuple[int, int]]:
    """Return each (row, person) of these who may see it now. Two statements."""
    shown = shown_in(rows, through)
    teams = teams_of(people, *{needs for _path, needs in through})
    return {
        (row, person)
        for row, ways in shown.items()
        for person in people
        if any(team in teams[person, needs] for needs, team in ways)
    }


SPREAD = 0.2  # part of a pause, to either side, so that messages that failed together are not retried together
PATIENCE = 24 * 3600.0  # seconds; the longest pause that a receiver can ask for by Retry-After


def spent(tries: int, pauses: Sequence[float]) -> bool:
    """Tell whether it was tried as often as its pauses allow, so that one whose senders die does not go on for ever."""
    return tries > len(pauses)


def pause(tries: int, pauses: Sequence[float], *, spread: float, asked: float | None = None) -> float | None:
    """Return the seconds until the next try after `tries` of them; None where there is no next.

    `spread`: a random number from -1 to 1; `asked`: the receiver's Retry-After, which can only lengthen the pause.
    """
    if spent(tries, pauses):
        return None
    chosen = pauses[tries - 1] * (1 + SPREAD * spread)
    return max(chosen, min(asked, PATIENCE)) if asked is not None else chosen
