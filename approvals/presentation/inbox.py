"""The inbox: open gates as rows, grouped by due date.

A row is drawn from its values alone, so that one which is the same for many readers and requests is drawn once. Who may
see it is decided before, by each request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from threading import RLock

from cachetools import LRUCache, cached
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

from approvals.assignments import claims
from approvals.cards.card import Card
from approvals.cards.stored import card_of
from approvals.consequences import sentences
from approvals.consequences.done_before import DoneBefore
from approvals.consequences.outcome_fates import OutcomeFate
from approvals.impact.result import Repeat
from approvals.models import Gate
from approvals.policy import bulk
from approvals.presentation.drawing import times
from approvals.presentation.drawing.repeats import moment
from approvals.presentation.gate_facts.fate_words import FateWords
from approvals.presentation.gate_facts.provenance import HERE, Provenance
from approvals.presentation.text.exact_call import AT_GATE
from checkpoints.postgresql.capped_count import Capped

from .gate_facts import outcomes, settling
from .gate_page.done_words import say_done
from .text import amounts, size_limit, untrusted

DRAWN = 4_000_000  # characters of rows that a process caches, with the cards that they show

LINGERS = timedelta(seconds=8)  # time for which a decided row stays in sight
FRESH = timedelta(seconds=20)
GROUPS = (
    ("hour", "Due within the hour"),
    ("today", "Later today"),
    ("later", "Later"),
)


@dataclass(frozen=True, kw_only=True)
class InboxRow:
    """One gate in a list: everything that its HTML shows."""

    number: int = 0
    group: str = "later"  # one of GROUPS
    state: str = "open"
    ended: str = ""  # how it ended, in words; empty while it is open
    icon: str = ""  # of how it ended
    became: FateWords | None = None  # what became of what it let run
    held: str = ""  # what was decided, where that may still be undone, and until when, as HTML
    held_until: str = ""
    apart: bool = False  # waits for nobody of this queue any more
    title: str = ""
    risk: str = Gate.Risk.MEDIUM
    kind: str = Gate.Kind.REVIEW
    asked: bytes  # the card, as it is saved
    provenance: Provenance = HERE
    opened: str = ""  # times as HTML; empty for none
    closed: str = ""
    deadline: str = ""
    fresh: bool = False
    leaves_in: int = 0  # seconds until a decided row disappears; 0 for rows that stay
    edited: bool = False
    refused: bool = False  # the same was rejected before
    looking: tuple[str, ...] = ()  # names of other people who have its page in sight
    holder: str = ""  # the name of who has claimed it
    holds: bool = False  # whether that is the reader
    said: bool = False  # the reader has already decided; others must agree
    awaits: str = ""  # whose approval is needed now, where a policy has roles
    pick: bool = False  # the reader may select it for a bulk decision
    alike: str = ""  # the same for gates of one kind
    alone: str = ""  # why it can only be decided by itself
    currency: str = ""  # of its amount as a number; empty: none
    value: str = ""
    delayed: str = ""  # what it costs an hour that it waits
    snoozed: str = ""  # until when the reader put it off, as HTML
    found: str = ""  # where the words of the search were found, if the row does not show it
    done: tuple[str, ...] = ()  # what other runs did that is like this, in words
    before: tuple[str, ...] = ()  # sentences about effects that an approval would repeat, with the agent's own titles

    @property
    def html(self) -> SafeString:
        return _drawn(self)[0]

    @property
    def card(self) -> Card:
        return card_of(self.asked, external=lambda: self.provenance.outside)

    @property
    def risk_label(self) -> str:
        return str(Gate.Risk(self.risk).label)

    @property
    def amount(self) -> str:
        return self.provenance.amount(self.card, masked=AT_GATE)

    @property
    def risk_theirs(self) -> bool:
        """Tell whether an external program set the risk, as not all of its actions have registered tools."""
        return self.provenance.outside and not self.card.registered_risk

    @property
    def differs(self) -> bool:
        """Tell whether its words name an amount or a recipient that no argument supports."""
        return bool(self.provenance.unsupported(self.card))


@cached(LRUCache(DRAWN, itemgetter(1)), lock=RLock())
def _drawn(row: InboxRow) -> tuple[SafeString, int]:
    before = size_limit.asked()
    html = render_to_string("approvals/inbox/row.html", {"row": row})
    alike = size_limit.asked() == before  # marks of untrusted texts are drawn as the page has room
    return html, len(html) + len(row.asked) if alike else DRAWN + 1


@dataclass(frozen=True, kw_only=True)
class InboxGroup:
    """Rows that are due about the same time."""

    key: str
    label: str
    rows: Sequence[InboxRow]
    whole: Capped | None = None  # the size of the group, where it goes on on the next page

    @property
    def open(self) -> int:
        return sum(not (row.ended or row.apart) for row in self.rows)

    @property
    def count(self) -> Capped:
        """Return the size of the whole group if known, else the number of open rows, or of all."""
        return self.whole or Capped(self.open or len(self.rows), False)


def row(
    gate: Gate,
    *,
    now: datetime,
    looking: Sequence[User] = (),
    lingering: bool = False,
    repeats: Sequence[Repeat] = (),
    awaits: str = "",
    decides: bool = False,
    found: str = "",
    fate: OutcomeFate | None = None,
    done: Sequence[DoneBefore] = (),
) -> InboxRow:
    """Build a gate's row. `lingering`: just decided, disappears soon. `repeats`: effects that an approval repeats.

    `awaits`: whose approval is needed now, where a policy has roles; `decides`: the reader may select it for a bulk
    decision; `found`: where the words of a search are in it; `fate`: what became of a closed gate's outcome;
    `done`: what other runs did that is like this.
    """
    left = LINGERS - (now - gate.closed_at) if lingering and gate.closed_at else timedelta(0)
    delay = None if gate.closed_at else gate.asked.cost_of_delay
    group = due(gate, now)
    ended = outcomes.ended(gate, fate=fate) if gate.status != Gate.Status.OPEN else None
    pick = decides and gate.status == Gate.Status.OPEN and not gate.reader_decided and not lingering
    provenance, put_off = Provenance.of(gate), getattr(gate, "snoozed_until", None)
    return InboxRow(
        number=gate.pk,
        group=group,
        state=ended.state if ended else "open",
        ended=ended.words if ended else "",
        icon=ended.icon if ended else "",
        became=ended.became if ended else None,
        held=settling.short(gate),
        held_until=times.element(gate.settles_at, "countdown"),
        title=gate.title,
        risk=gate.risk,
        kind=gate.kind,
        asked=bytes(gate.card),
        provenance=provenance,
        pick=pick,
        alike=bulk.kind_of(gate) if pick else "",
        alone=bulk.why_alone(gate) if pick else "",
        currency=gate.amount_currency,
        value=str(gate.amount_value) if gate.amount_currency else "",
        delayed=amounts.written(delay["amount"], delay["currency"]) if delay else "",
        snoozed=times.element(put_off, "clock") if put_off and not ended else "",
        found=found,
        opened=times.element(gate.opened_at, "ago"),
        closed=times.element(ended.at if ended else None, "ago"),
        deadline=times.element(gate.deadline, "until" if group == "hour" else "clock"),
        fresh=gate.status == Gate.Status.OPEN and now - gate.opened_at < FRESH,
        leaves_in=max(int(left.total_seconds()) + 1, 1) if lingering and ended else 0,
        apart=lingering,
        edited=gate.proposal > 1,
        refused=gate.attempt > 1,
        looking=tuple(map(untrusted.person, looking)),
        holder=untrusted.person(holder) if (holder := claims.holder_of(gate)) and not ended else "",
        holds=gate.reader_holds,
        said=gate.reader_decided and not lingering,
        awaits="" if ended else awaits,
        done=tuple(say_done(each, gate.asked.resource, outside=provenance.outside) for each in done),
        before=tuple(sentences.done(each, at=moment(each.at), here=gate.run_id) for each in repeats),
    )


def due(gate: Gate, now: datetime) -> str:
    """Return the group a gate belongs to, by its deadline in the reader's time zone."""
    if gate.deadline is None:
        return "later"
    if gate.deadline - now <= timedelta(hours=1):
        return "hour"
    return "today" if localtime(gate.deadline).date() == localtime(now).date() else "later"


def due_within(key: str, now: datetime) -> tuple[datetime | None, datetime | None]:
    """Return (after, until), the bounds of a group's deadlines; None: no bound."""
    hour = now + timedelta(hours=1)
    midnight = localtime(now).replace(hour=23, minute=59, second=59, microsecond=999_999)
    return {"hour": (None, hour), "today": (hour, midnight), "later": (max(hour, midnight), None)}[key]


def grouped(rows: Iterable[InboxRow]) -> list[InboxGroup]:
    """Sort rows into groups by due date; groups without rows are left out."""
    by: dict[str, list[InboxRow]] = {key: [] for key, label in GROUPS}
    for each in rows:
        by[each.group].append(each)
    return [InboxGroup(key=key, label=str(label), rows=by[key]) for key, label in GROUPS if by[key]]


BY_CURRENCY = ("amount", "delay")  # orders in which each currency is a group of its own


def by_currency(rows: Iterable[InboxRow], sort: str) -> list[InboxGroup]:
    """Put rows that are in this order into a group for each currency, as amounts of two cannot be compared."""
    by: dict[str, list[InboxRow]] = {}
    for each in rows:
        delay = each.card.cost_of_delay
        unit = each.currency if sort == "amount" else str(delay["currency"]) if delay else ""
        by.setdefault(unit, []).append(each)
    words = {
        "amount": ("{currency}, the largest first", "No amount in one currency"),
        "delay": ("{currency} an hour, the costliest first", "No cost of delay stated"),
    }[sort]
    return [
        InboxGroup(key=unit.lower() or "none", label=words[0].format(currency=unit) if unit else words[1], rows=found)
        for unit, found in by.items()
    ]


def summary(
    groups: Sequence[InboxGroup], *, whole: Capped | None = None, filtered: bool = False, dated: bool = True
) -> str:
    """Write `14 open, 3 of them due within the hour.` `whole`: how many the queue holds, where not all are shown.

    `filtered`: filters are set, so that none shown does not mean that none waits. `dated`: the groups are by due date.
    """
    shown = sum(group.open for group in groups)
    soon = sum(group.open for group in groups if group.key == "hour" and dated)
    if filtered and whole is not None:
        return f"{shown} shown of {whole} open."
    if not shown:
        return "None open."
    more = whole is not None and (whole.more or whole.number > shown)
    count, of = (whole, f"the first {shown}") if more else (shown, "them")
    return f"{count} open, {soon} of {of} due within the hour." if soon else f"{count} open."
