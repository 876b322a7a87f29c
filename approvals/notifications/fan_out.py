"""Turns events into notices: one for each person and address who wants to hear of it, in the order of the commits.

The events of gates are read past a cursor that the database keeps. What follows from them is worked out before the
transaction that writes the notices and moves the cursor: of two who read the same events, only the first finds the
cursor where it was, so nothing is told twice, and a death before the commit loses nothing.

Also here: the events of which people are told, and whom each of them names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.functional import cached_property

from approvals.gates.reading import with_reviewers
from approvals.models import AddedTeam, Decision, Gate, Message, NoticeCursor, NotificationPreference
from approvals.models.notifications.message import FREE, known_to
from approvals.policy import authority
from checkpoints import crash_points
from checkpoints.events.commit_order import Cursor, events_after, settled_events
from checkpoints.events.event import NOT_SEALED, Event
from checkpoints.models import Run
from checkpoints.postgresql.prepared_rows import insert_rows
from checkpoints.values import canonical_json

from . import account, email, wanted_when
from .building import NoticeKind
from .channel import NoticeAddress, NoticeChannel, channels

OPENED = "gate.opened"
ENDED = ("gate.closed", "gate.expired", "gate.withdrawn")
FAILED = "run.failed"
# Others may decide from now on, or by another time: those who were not told yet are told now.
HANDED = "gate.reassigned"
CHANGED = ("gate.escalated", HANDED, "gate.rescheduled")
# Events whose data names the people who hear of it: whose name was written, and whose vote counts no more;
MENTIONED = "gate.mentioned"
LAPSED = ("gate.lapsed", "gate.edited")
# or one person: to whom a gate was handed, whose claim was taken over, and who decides for somebody who is away.
TAKEN_OVER = "gate.claimed"
STANDS_IN = "delegation.made"
NAMED_BY = {HANDED: "to", TAKEN_OVER: "taken_from", STANDS_IN: "delegate"}
NOT_RUN = "gate.not_run"  # it was approved, and nothing has run
ASKS = "gate.asks"  # others are asked from now on


@dataclass(frozen=True)
class ToldEvent:
    """One event that somebody may have to hear of."""

    event: Event
    gate: int | None

    @property
    def users(self) -> list[int]:
        """Return the ids of the people whom it names."""
        kind = self.event.kind
        if kind not in (MENTIONED, *LAPSED, *NAMED_BY):
            return []
        named = [self._said.get(NAMED_BY[kind])] if kind in NAMED_BY else self._said.get("users", [])
        found = [each if isinstance(each, int) else _user(each) for each in named] if isinstance(named, list) else []
        return [each for each in found if each is not None]

    @property
    def before(self) -> list[int] | None:
        """Return whom the gate asked before it asks others, as a gate's `awaits`; None for any other event."""
        return self._said.get("before") if self.event.kind == ASKS else None

    @property
    def asks(self) -> bool:
        """Tell whether others may be asked from now on."""
        return self.event.kind in (OPENED, ASKS, *CHANGED)

    @property
    def matters(self) -> bool:
        """Tell whether somebody may have to hear of it."""
        kind, told = self.event.kind, (*ENDED, MENTIONED, *LAPSED, NOT_RUN, *account.CHANGES)
        return self.asks or kind in told or (kind == TAKEN_OVER and bool(self.users))

    @cached_property
    def _said(self) -> dict[str, Any]:
        said: dict[str, Any] = canonical_json.decode_canonical(bytes(self.event.data))
        return said

    @property
    def actor(self) -> int | None:
        """Return the id of the person who did it; None for others."""
        return _user(self.event.actor)


def told_of(event: Event) -> ToldEvent:
    """Return the event with the number of the gate that it is about."""
    kind, _, number = event.subject.partition(":")
    return ToldEvent(event, int(number) if kind == "gate" and number.isdigit() else None)


def _user(actor: object) -> int | None:
    """Return the id of the person whom an event names as "user:7"; None for others."""
    role, _, number = str(actor).partition(":")
    return int(number) if role == "user" and number.isdigit() else None


READ = 500  # events a transaction at most
MATTERING = 25  # of them that somebody may hear of: a transaction that writes long holds back all readers of events


def fan_out() -> int:
    """Write the notices of the next events; return how many events were read, 0 where somebody else was faster."""
    cursor = NoticeCursor.current()
    told = _bounded([told_of(each) for each in events_after(settled_events().exclude(kind=NOT_SEALED), cursor)[:READ]])
    if not told:
        return 0
    batch = NoticeBatch.of(told)
    made, over = batch.notices(), batch.ended
    crash_points.point("notices_worked_out")
    with transaction.atomic():
        if not NoticeCursor.move(cursor, Cursor.from_event(told[-1].event)):
            return 0
        for how, gates in over.items():
            asking = Message.objects.filter(FREE, gate__in=gates, kind__in=(NoticeKind.ASKED, NoticeKind.REMINDER))
            asking.give_up(Message.Status.DROPPED, how)
        Message.objects.move(batch.moved_reminders())
        insert_rows(made, unknown_only=True)  # who was asked in this turn before is not asked again
        crash_points.point("notices_written")
    return len(told)


def _bounded(told: list[ToldEvent]) -> list[ToldEvent]:
    """Return the first events, with no more of those that matter than one transaction writes notices of."""
    places = [at for at, each in enumerate(told) if each.matters]
    return told[: places[MATTERING]] if len(places) > MATTERING else told


@dataclass
class NoticeBatch:
    """The events of one transaction, with the rows that they are about."""

    told: Sequence[ToldEvent]
    gates: dict[int, Gate]
    runs: dict[int, Run]
    deciders: dict[int, set[int]]  # by gate
    voted: set[tuple[int, int]]  # (gate, person) who decided what has not run
    known: dict[int, set[tuple[int | None, str, int | None]]]  # by gate: who was asked, by which channel and address
    settings: dict[int, NotificationPreference]
    addresses: dict[tuple[int, str], list[NoticeAddress]]  # by person and channel
    teams: dict[int, list[int]]  # by gate: its own, and those added to its reviewers
    shared: dict[tuple[int, str], list[NoticeAddress]]  # by team and channel
    channels: Sequence[NoticeChannel]
    reminders: list[Message]  # that wait, of the gates of which others may decide from now on, or by another time
    reminded: set[tuple[int | None, int | None]]  # (gate, person) who has one that waits
    anew: dict[int, set[int]]  # by gate: who is asked from now on, and was not before these events
    pending: set[tuple[int | None, int | None]]  # (gate, person) whom a message waits for that asks them
    now: datetime

    @classmethod
    def of(cls, told: Sequence[ToldEvent]) -> NoticeBatch:
        """Read what the events are about, in a fixed number of statements."""
        named = {each.gate for each in told if each.gate and each.matters}
        gates = {gate.pk: gate for gate in with_reviewers(named)}
        failed = {each.event.run_id for each in told if each.event.kind == FAILED and each.event.run_id}
        runs = {run.pk: run for run in Run.objects.filter(pk__in=failed).select_related("started_by")} if failed else {}
        deciders = authority.may_decide(list(gates.values())) if gates else {}
        known = known_to(gates) if gates else {}
        people = {person for there in deciders.values() for person in there}
        people |= {person for there in known.values() for person, *_ in there if person}
        people |= {person for each in told for person in each.users if each.gate in gates or each.gate is None}
        stuck = {each.gate for each in told if each.event.kind == NOT_RUN} & set(gates)
        voted = (
            set(Decision.objects.filter(gate__in=stuck, counts=True).values_list("gate_id", "user_id"))
            if stuck
            else set()
        )
        people |= {person for _, person in voted}
        people |= {starter for gate in gates.values() if (starter := _starter(gate.run))}
        people |= {who for each in told if (who := account.person_of(each.event))}
        people |= {starter for run in runs.values() if (starter := _starter(run))}
        places = {gate.pk: [gate.team_id] for gate in gates.values()}
        for pk, team in AddedTeam.objects.filter(gate__in=gates).order_by("pk").values_list("gate", "team"):
            places[pk] += [team] if team not in places[pk] else []
        fit = channels() if people or gates else []
        found = [each for channel in fit for each in channel.addresses(people=people)]
        known_teams = {team for there in places.values() for team in there}
        teams = [each for channel in fit for each in channel.addresses(teams=known_teams)]
        rows = NotificationPreference.objects.in_bulk(people) if people else {}
        anew = _newly_asked(told, gates, deciders)
        moved = {each.gate for each in told if each.asks and each.event.kind != OPENED} & set(gates)
        waiting = Message.objects.pending().filter(gate__in=moved, kind=NoticeKind.REMINDER)
        reminders = list(waiting) if moved else []
        return cls(
            told=told, gates=gates, runs=runs, deciders=deciders, voted=voted, known=known, settings=rows,
            addresses=_grouped((each.person, each) for each in found), teams=places,
            shared=_grouped((each.team, each) for each in teams), channels=fit, reminders=reminders,
            reminded={(each.gate_id, each.user_id) for each in reminders}, now=timezone.now(),
            anew=anew, pending=_waiting_for(anew),
        )  # fmt: skip

    @property
    def ended(self) -> dict[str, list[int]]:
        """Return, by how they ended, the gates that these events ended, about which nobody is asked any more."""
        over = [self.gates[each.gate] for each in self.told if each.event.kind in ENDED and each.gate in self.gates]
        return {how: [gate.pk for gate in over if gate.status == how] for how in {gate.status for gate in over}}

    def notices(self) -> list[Message]:
        """Return the notices to write, each once."""
        made: dict[tuple[object, ...], Message] = {}
        for told in self.told:
            for notice in self._of(told):
                key = (notice.event, notice.kind, notice.channel, notice.user_id, notice.team_id, notice.address_id)
                made.setdefault(key, notice)
        return list(made.values())

    def _of(self, told: ToldEvent) -> Iterator[Message]:
        kind, gate = told.event.kind, self.gates.get(told.gate or 0)
        if kind == FAILED:
            yield from self._failed(told)
        if kind == STANDS_IN:
            for person in told.users:
                yield from self._each(told, None, NoticeKind.HANDOVER, person)
        if changed := account.person_of(told.event):
            for each in self.addresses.get((changed, email.NAME), ()):
                yield self._notice(told, NoticeKind.ACCOUNT, each, None)
        if gate is None:
            return
        if told.asks and gate.status == Gate.Status.OPEN:
            yield from self._asked(told, gate)
        if kind in ENDED:
            yield from self._ended(told, gate)
        if kind == MENTIONED:
            for person in sorted(set(told.users) - {told.actor}):
                yield from self._each(told, gate, NoticeKind.MENTION, person)
        if kind == TAKEN_OVER and gate.status == Gate.Status.OPEN:
            for person in told.users:
                yield from self._each(told, gate, NoticeKind.HANDOVER, person)
        if kind in (HANDED, *LAPSED) and gate.status == Gate.Status.OPEN:
            for person in sorted(set(told.users) - {told.actor}):
                if person in self.deciders[gate.pk]:
                    self.pending.add((gate.pk, person))
                    yield from self._each(told, gate, NoticeKind.ASKED, person)
                elif kind == HANDED:  # before their turn
                    yield from self._each(told, gate, NoticeKind.MENTION, person)
        if kind == NOT_RUN:
            for person in {who for at, who in self.voted if at == gate.pk} | {_starter(gate.run) or 0}:
                yield from self._each(told, gate, NoticeKind.MY_RUN, person)

    def _asked(self, told: ToldEvent, gate: Gate) -> Iterator[Message]:
        """Ask those who may decide and were not asked before; plan a reminder for all of whom none waits."""
        known = self.known.setdefault(gate.pk, set())
        for person in sorted(self.deciders[gate.pk]):
            settings = self.settings.get(person)
            due = wanted_when.reminder(settings, gate.policy, opened=gate.opened_at, deadline=gate.deadline)
            again = person in self.anew.get(gate.pk, ()) and (gate.pk, person) not in self.pending
            if again or not any(who == person for who, *_ in known):
                self.pending.add((gate.pk, person))
                yield from self._each(told, gate, NoticeKind.ASKED, person, turn=gate.turn)
            if due and due > self.now and (gate.pk, person) not in self.reminded:
                self.reminded.add((gate.pk, person))
                yield from self._each(told, gate, NoticeKind.REMINDER, person, due=due, turn=gate.turn)
        for channel in self.channels:
            for each in self._shared(gate, channel.name):
                if not any(at == each.id for _, name, at in known if name == channel.name):
                    known.add((None, channel.name, each.id))
                    yield self._notice(told, NoticeKind.ASKED, each, gate, turn=gate.turn)
        known |= {(person, "", None) for person in self.deciders[gate.pk]}

    def moved_reminders(self) -> dict[int, datetime]:
        """Return, by its id, when each pending reminder of a gate whose deadline moved is due now."""
        found: dict[int, datetime] = {}
        moved = {each.gate for each in self.told if each.event.kind in CHANGED}
        for row in [each for each in self.reminders if each.gate_id in moved]:
            gate = self.gates[row.gate_id or 0]
            settings = self.settings.get(row.user_id or 0)
            due = wanted_when.reminder(settings, gate.policy, opened=gate.opened_at, deadline=gate.deadline)
            if due and due != row.next_attempt_at:
                found[row.pk] = max(due, self.now)
        return found

    def _ended(self, told: ToldEvent, gate: Gate) -> Iterator[Message]:
        """Tell those who were asked, whoever started the run, and each place that shows that the gate is open."""
        by, starter = told.actor, _starter(gate.run)
        asked = self.known.get(gate.pk, set())
        people = {person for person, *_ in asked if person} - {by}
        for person in sorted(people - {starter}):
            yield from self._each(told, gate, NoticeKind.DECIDED, person)
        if starter and starter != by:
            yield from self._each(told, gate, NoticeKind.MY_RUN, starter)
        for channel in self.channels:
            if not channel.updates:
                continue
            for whom, name, at in sorted(asked, key=str):
                if name == channel.name:
                    where = [*self.addresses.get((whom or 0, name), ()), *self._shared(gate, name)]
                    yield from (self._notice(told, NoticeKind.DECIDED, each, gate) for each in where if each.id == at)

    def _shared(self, gate: Gate, name: str) -> list[NoticeAddress]:
        """List the places in a channel where the gate is told to its team and to those added to its reviewers."""
        return [each for team in self.teams[gate.pk] for each in self.shared.get((team, name), ())]

    def _failed(self, told: ToldEvent) -> Iterator[Message]:
        run = self.runs.get(told.event.run_id or 0)
        starter = _starter(run) if run else None
        if run and starter and starter != told.actor:
            yield from self._each(told, None, NoticeKind.MY_RUN, starter, run=run.pk)

    def _each(
        self, told: ToldEvent, gate: Gate | None, kind: NoticeKind, person: int, *, run: int | None = None,
        due: datetime | None = None, turn: int | None = None,
    ) -> Iterator[Message]:  # fmt: skip
        """Return the person's notice by each channel and address by which they want this kind."""
        for channel in self.channels:
            if wanted_when.wants(self.settings.get(person), kind, channel.name, gate.risk if gate else "medium"):
                for each in self.addresses.get((person, channel.name), ()):
                    yield self._notice(told, kind, each, gate, run=run, due=due, turn=turn)

    def _notice(
        self, told: ToldEvent, kind: NoticeKind, to: NoticeAddress, gate: Gate | None, *, run: int | None = None,
        due: datetime | None = None, turn: int | None = None,
    ) -> Message:  # fmt: skip
        urgency = wanted_when.urgency(
            gate.risk if gate else "medium", gate.deadline if gate else None, kind=kind, now=due or self.now
        )
        return Message(
            event=told.event.pk, kind=kind, channel=to.channel, user_id=to.person, team_id=to.team, address_id=to.id,
            gate_id=gate.pk if gate else None, turn=turn, run=run, urgency=urgency, next_attempt_at=due or self.now,
        )  # fmt: skip


def _newly_asked(
    told: Sequence[ToldEvent], gates: Mapping[int, Gate], deciders: Mapping[int, set[int]]
) -> dict[int, set[int]]:
    """Return, by gate that asks others by now, the people whom it did not ask before the first of these events."""
    before = {each.gate: each.before for each in reversed(told) if each.gate in gates and each.before is not None}
    earlier = [copy(gate) for gate in gates.values() if gate.pk in before]
    for gate in earlier:
        gate.awaits = before[gate.pk] or []
    were = authority.may_decide(earlier) if earlier else {}
    return {pk: deciders[pk] - asked for pk, asked in were.items()}


def _waiting_for(gates: Collection[int]) -> set[tuple[int | None, int | None]]:
    if not gates:
        return set()
    # One that somebody sends may be dropped just now.
    asking = Message.objects.pending().filter(FREE, gate__in=gates, kind=NoticeKind.ASKED)
    return set(asking.values_list("gate_id", "user_id"))


def _starter(run: Run) -> int | None:
    """Return the id of the person who started a run, to tell them; None where nobody did."""
    return run.started_by.pk if run.started_by else None


def _grouped(found: Iterable[tuple[int | None, NoticeAddress]]) -> dict[tuple[int, str], list[NoticeAddress]]:
    groups: dict[tuple[int, str], list[NoticeAddress]] = {}
    for owner, each in found:
        if owner is not None:
            groups.setdefault((owner, each.channel), []).append(each)
    return groups
