"""Builds the message about a gate, once for all who are told: what its policy lets leave, and nothing else.

Also here: the message about a gate, built once and rendered by each channel. Pure: plain text, no markup, no database.

It holds only what the gate's policy lets leave the house. A channel adds no fact of its own, and escapes everything:
titles and facts are an agent's words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any
from urllib.parse import urljoin
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.db.models import TextChoices
from django.urls import reverse
from django.utils import formats

from approvals.cards.action import Action
from approvals.english import noun_for
from approvals.models import Delegation, Gate, Outcome, Policy, Proposal
from approvals.presentation.gate_facts.provenance import Provenance
from approvals.presentation.text.exact_call import IN_MESSAGES
from approvals.presentation.text.untrusted import plain
from checkpoints.actors import of_user
from checkpoints.models import Run


class NoticeKind(TextChoices):
    """The kinds of messages, with the words of the logs. A person chooses channels for all but the last four."""

    ASKED = "asked", "decision needed"  # somebody has to decide, and this person may
    REMINDER = "reminder", "reminder"  # the deadline is near, and nobody has decided
    DECIDED = "decided", "how it ended"  # a gate that the person was told of has ended
    MENTION = "mention", "mention"  # somebody named the person in a gate's thread
    HANDOVER = "handover", "handover"  # somebody took over what the person had claimed, or named them to stand in
    MY_RUN = "my_run", "own run"  # a gate of a run that the person started has ended, or the run failed
    DIGEST = "digest", "digest"  # what waits for the person, at the times that they chose
    TEST = "test", "test message"  # the person asked for it on the page of notification settings
    ACCOUNT = "account", "change of the account"  # how the person signs in was changed
    RESET = "reset", "link for a new password"  # somebody asked for it on the sign-in page


class Urgency(IntEnum):
    """The urgency of a message; a channel maps it to its own words (Web Push: RFC 8030, section 5.3)."""

    LOW = 0  # may wait: decided, digest
    NORMAL = 1
    HIGH = 2  # critical risk, or a deadline within the hour


@dataclass(frozen=True)
class MessageFact:
    """One labelled value, as text."""

    label: str
    value: str


@dataclass(frozen=True)
class Section:
    """The values of one action, where the policy lets all of it leave."""

    heading: str
    facts: tuple[MessageFact, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NoticeMessage:
    """One message. `link` is the only address in it, and opens a page; nothing is decided by opening it."""

    kind: NoticeKind
    subject: str  # one line: what happened, with the gate's title
    title: str = ""  # the gate's title alone, in the agent's words; "" where there is no gate
    reason: str = ""  # why this person gets it, as a sentence
    facts: tuple[MessageFact, ...] = ()
    sections: tuple[Section, ...] = ()
    link: str  # absolute
    settings_link: str = ""  # absolute: the page where the person changes or stops these messages; "" where they cannot
    button: str  # the words of the link: "Open the request"
    urgency: Urgency = Urgency.NORMAL
    gate: int | None = None
    thread: str = ""  # the same for all messages about one gate, as "gate-42"; "" where it stands alone
    deadline: datetime | None = None  # aware; channels show it in the person's zone
    ended: str = ""  # how the gate ended, as a sentence: "Approved by Ann Okafor."; "" while it is open
    items: tuple[NoticeMessage, ...] = field(default=())  # of a list: what waits, the most urgent first


def write_moment(at: datetime, zone: str) -> str:
    """Write a moment in its reader's zone, with day and zone, as "27 Nov 2026, 14:00 (Europe/Berlin)"."""
    name = zone if zone in available_timezones() else "UTC"
    there = at.astimezone(ZoneInfo(name))
    return f"{formats.date_format(there, 'j M Y, H:i')} ({name})"


Leaves = Policy.Leaves
TITLE = 200  # characters of a title
VALUE = 300  # characters of one value
VALUES = 25  # values of one action
ACTIONS = 10
RANK = (Leaves.NUMBER, Leaves.TITLE, Leaves.FACTS, Leaves.ALL)


def absolute(path: str) -> str:
    """Return the address of a page as others write it."""
    return urljoin(settings.HOLDPOINT_ORIGINS[0], path)


def settings_page() -> str:
    """Return the address of the page of notification settings."""
    return absolute(reverse("notifications"))


def of_gate(
    gate: Gate,
    standing: Proposal,
    kind: NoticeKind,
    *,
    urgency: Urgency,
    outcome: Outcome | None = None,
    by: str = "",
    stuck: bool = False,
    handed: bool = False,
) -> NoticeMessage:
    """Build the message of this kind about a gate, which comes with its run's plan, its policy and team.

    `outcome`: how it ended. `by`: who mentioned the person, or `handed` them the gate. `stuck`: it was approved, and
    nothing has run.
    """
    source = Provenance.of(gate)
    title = plain(gate.title, limit=TITLE) if _may(gate, Leaves.TITLE) else ""
    title = source.in_a_line(title, named=_may(gate, Leaves.FACTS))
    by = by if may_name(gate) else ""
    ended = (how_it_ended(outcome) if may_name(gate) else "This gate has ended.") if outcome else ""
    ended = f"{ended} Nothing has run since." if stuck else ended
    return NoticeMessage(
        kind=kind,
        subject=_subject(gate, kind, title, ended, by, handed=handed),
        title=title,
        facts=tuple(_facts(gate, standing, source)),
        sections=tuple(_sections(standing, source)) if _may(gate, Leaves.ALL) else (),
        link=absolute(reverse("gate", args=[gate.pk])),
        settings_link=settings_page(),
        button="See the gate" if ended else "Open the gate",
        urgency=urgency,
        gate=gate.pk,
        thread=f"gate-{gate.pk}",
        deadline=None if ended else gate.deadline,
        ended=ended,
    )


def reason_for(kind: NoticeKind, gate: Gate, *, again: bool, handed: bool, by: str) -> str:
    """Say why somebody gets a message about the gate. `again`: their earlier decision counts no more."""
    team, by = plain(gate.team.name, limit=80), plain(by, limit=80)
    match kind:
        case NoticeKind.ASKED if again:
            return f"You get this because your earlier decision on this gate of {team} no longer counts."
        case NoticeKind.ASKED | NoticeKind.MENTION if handed:
            return f"You get this because {by or 'somebody'} asked you to act on this gate of {team}."
        case NoticeKind.ASKED | NoticeKind.REMINDER:
            return f"You get this because you may decide this gate of {team}."
        case NoticeKind.DECIDED:
            return f"You get this because you were asked about this gate of {team}."
        case NoticeKind.MENTION:
            return "You get this because somebody wrote your name in the gate's conversation."
        case NoticeKind.HANDOVER:
            return f"You get this because you had claimed this gate of {team}."
        case _:
            return "You get this because you started the run that asked, or decided the gate."


def of_run(run: Run) -> NoticeMessage:
    """Build the message that a run failed, for the person who started it."""
    return NoticeMessage(
        kind=NoticeKind.MY_RUN,
        subject=f"Your run {run} of {plain(run.plan.agent, limit=100)} failed",
        reason="You get this because you started the run.",
        link=absolute(reverse("run", args=[run.pk])),
        settings_link=settings_page(),
        button="See the run",
        urgency=Urgency.LOW,
        thread=f"run-{run.pk}",
    )


def of_time_away(away: Delegation, zone: str) -> NoticeMessage:
    """Build the message to the person who decides for somebody meanwhile, with its moments in their zone."""
    begins, ends = write_moment(away.starts_at, zone), write_moment(away.ends_at, zone)
    name = plain(of_user(away.person).name, limit=80)
    return NoticeMessage(
        kind=NoticeKind.HANDOVER,
        subject=f"You decide for {name} while they are away",
        facts=(MessageFact("From", begins), MessageFact("Until", ends)),
        reason=f"You get this because {name} named you to decide for them.",
        link=absolute(reverse("away")),
        settings_link=settings_page(),
        button="See for whom you decide",
    )


def of_many(kind: NoticeKind, items: Sequence[NoticeMessage], *, reason: str, more: bool = False) -> NoticeMessage:
    """Build one message that lists gates which wait. `more`: others wait, too."""
    count = len(items)
    said = (
        f"More than {count} gates wait for your decision"
        if more
        else (f"{count} gate waits for your decision" if count == 1 else f"{count} gates wait for your decision")
    )
    return NoticeMessage(
        kind=kind,
        subject=said,
        reason=reason,
        link=absolute("/"),
        settings_link=settings_page(),
        button="Open the inbox",
        urgency=max(each.urgency for each in items),
        items=tuple(items),
    )


def may_name(gate: Gate) -> bool:
    """Tell whether messages about the gate may name people, and say what they decided."""
    return _may(gate, Leaves.TITLE)


def _may(gate: Gate, wanted: Policy.Leaves) -> bool:
    return RANK.index(Leaves(gate.policy.leaves)) >= RANK.index(wanted)


def _subject(gate: Gate, kind: NoticeKind, title: str, ended: str, by: str, *, handed: bool) -> str:
    title = title or f"gate {gate.pk}"
    by = plain(by, limit=80) or "Somebody"
    match kind:
        case NoticeKind.ASKED:
            return f"Decision needed: {title}"
        case NoticeKind.REMINDER:
            return f"Still waiting for a decision: {title}"
        case NoticeKind.MENTION if handed:
            return f"{by} asks you to act: {title}"
        case NoticeKind.MENTION:
            return f"{by} mentioned you: {title}"
        case NoticeKind.HANDOVER:
            return f"{by} took over what you had claimed: {title}"
        case _:
            return f"{ended} {title}"


def _facts(gate: Gate, standing: Proposal, source: Provenance) -> Iterator[MessageFact]:
    """Yield what the gate is about; what only a program says is one fact under its name, which no channel can part."""
    team = plain(gate.team.name, limit=80)
    if not _may(gate, Leaves.FACTS):
        yield MessageFact("Team", team)
        return
    card = standing.card
    risk = MessageFact("Risk", str(Gate.Risk(gate.risk).label))
    about = [("Amount", card.amount), ("For", card.for_whom), ("Concerns", card.resource)]
    stated = [MessageFact(label, plain(value, limit=VALUE)) for label, value in about if value]
    if source.outside:
        stated += [] if card.registered_risk else [risk]
        if amount := source.amount(card, masked=IN_MESSAGES):
            yield MessageFact("Amount", plain(amount, limit=VALUE))
    else:
        yield from stated
    if card.registered_risk or not source.outside:
        yield risk
    titles = [plain(source.named(action) or action.tool, limit=TITLE) for action in card.actions[:ACTIONS]]
    if titles:
        rest = len(card.actions) - len(titles)
        more = [f"{rest} more"] if rest else []
        yield MessageFact(noun_for(len(card.actions), "Action"), "; ".join([*titles, *more]))
    if source.outside and stated:
        yield MessageFact(source.marks["facts"], "; ".join(f"{fact.label}: “{fact.value}”" for fact in stated))
    yield MessageFact("Agent", plain(gate.run.plan.agent, limit=100))
    yield MessageFact("Team", team)


def _sections(standing: Proposal, source: Provenance) -> Iterator[Section]:
    actions = standing.card.actions
    for action in actions[:ACTIONS]:
        yield Section(plain(source.named(action) or action.tool, limit=TITLE), tuple(values(action)))
    if len(actions) > ACTIONS:
        yield Section(f"{len(actions) - ACTIONS} more actions are on the gate's page.")


def values(action: Action) -> Iterator[MessageFact]:
    """Flatten an action's arguments, without secrets, into labelled values."""
    found = list(_leaves("", action.masked_in_messages))
    for at, value in found[:VALUES]:
        yield MessageFact(plain(at, limit=100) or "Value", plain(value, limit=VALUE, value=True))
    if len(found) > VALUES:
        yield MessageFact("And", f"{len(found) - VALUES} more values, on the gate's page")


def _leaves(at: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name, inside in value.items():
            yield from _leaves(f"{at}, {name}" if at else str(name), inside)
    elif isinstance(value, list) and value:
        for number, inside in enumerate(value, 1):
            yield from _leaves(f"{at} {number}".strip(), inside)
    else:
        yield at, value if isinstance(value, str) else str(value) if value is not None else "empty"


def how_it_ended(outcome: Outcome) -> str:
    """Say how a gate ended, and by whom, as a sentence."""
    by = plain(outcome.by_name or outcome.by, limit=80)
    match outcome.kind:
        case Outcome.Kind.REJECTED:
            return f"Rejected by {by}."
        case Outcome.Kind.EDITED:
            return f"Approved with changes by {by}."
        case Outcome.Kind.ANSWERED:
            return f"Answered by {by}."
        case Outcome.Kind.MIXED:
            return f"Decided action by action by {by}."
        case Outcome.Kind.EXPIRED:
            return "Expired: nobody decided in time."
        case Outcome.Kind.WITHDRAWN:
            return "Withdrawn: no answer is needed any more."
        case _:
            return f"Approved by {by}."
