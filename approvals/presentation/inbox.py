"""The inbox: open gates as rows, grouped by due date.

A row is drawn from its values alone, so that one which is the same for many readers and requests is drawn once. Who may
see it is decided before, by each request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import itemgetter
from threading import RLock

from cachetools import LRUCache, cached
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from approvals.assignments import claims
from approvals.cards.card import Card
from approvals.cards.stored import card_of
from approvals.consequences import sentences
from approvals.impact.result import Repeat
from approvals.models import Gate
from approvals.presentation.drawing import times
from approvals.presentation.drawing.repeats import moment
from approvals.presentation.gate_facts.provenance import HERE, Provenance
from checkpoints.postgresql.capped_count import Capped

from .gate_facts import outcomes
from .text import size_limit, untrusted

DRAWN = 4_000_000  # characters of rows that a process caches, with the cards that they show

LINGERS = timedelta(seconds=8)  # time for which a decided row stays in sight
FRESH = timedelta(seconds=20)
GROUPS = (
    ("hour", gettext_lazy("Due within the hour")),
    ("today", gettext_lazy("Later today")),
    ("later", gettext_lazy("Later")),
)


@dataclass(frozen=True, kw_only=True)
class InboxRow:
    """One gate in a list: everything that its HTML shows."""

    number: int = 0
    group: str = "later"  # one of GROUPS
    state: str = "open"
    ended: str = ""  # how it ended, in words; empty while it is open
    icon: str = ""  # of how it ended
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
    before: tuple[str, ...] = ()  # sentences about effects that an approval would repeat, with the agent's own titles
    language: str | None = field(default_factory=get_language)

    @property
    def html(self) -> SafeString:
        return _drawn(self)[0]

    @property
    def card(self) -> Card:
        return card_of(self.asked)

    @property
    def risk_label(self) -> str:
        return str(Gate.Risk(self.risk).label)

    @property
    def amount(self) -> str:
        return self.provenance.amount(self.card)

    @property
    def risk_theirs(self) -> bool:
        """Tell whether an external program set the risk, as not all of its actions have registered tools."""
        actions = self.card.actions
        return self.provenance.outside and (not actions or any(map(self.provenance.quotes, actions)))

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
        return sum(not row.ended for row in self.rows)

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
) -> InboxRow:
    """Build a gate's row. `lingering`: just decided, disappears soon. `repeats`: effects that an approval repeats."""
    left = LINGERS - (now - gate.closed_at) if lingering and gate.closed_at else timedelta(0)
    group = due(gate, now)
    ended = outcomes.ended(gate) if gate.status != Gate.Status.OPEN else None
    return InboxRow(
        number=gate.pk,
        group=group,
        state=ended.state if ended else "open",
        ended=ended.words if ended else "",
        icon=ended.icon if ended else "",
        title=gate.title,
        risk=gate.risk,
        kind=gate.kind,
        asked=bytes(gate.card),
        provenance=Provenance.of(gate),
        opened=times.element(gate.opened_at, "ago"),
        closed=times.element(ended.at if ended else None, "ago"),
        deadline=times.element(gate.deadline, "until" if group == "hour" else "clock"),
        fresh=gate.status == Gate.Status.OPEN and now - gate.opened_at < FRESH,
        leaves_in=max(int(left.total_seconds()) + 1, 1) if lingering else 0,
        edited=gate.proposal > 1,
        refused=gate.attempt > 1,
        looking=tuple(map(untrusted.person, looking)),
        holder=untrusted.person(holder) if (holder := claims.holder_of(gate)) and not ended else "",
        holds=gate.reader_holds,
        said=gate.reader_decided and not lingering,
        before=tuple(sentences.done(each, at=moment(each.at), here=gate.run_id) for each in repeats),
    )


def due(gate: Gate, now: datetime) -> str:
    """Return the group a gate belongs to, by its deadline in the database's time zone."""
    if gate.deadline is None:
        return "later"
    if gate.deadline - now <= timedelta(hours=1):
        return "hour"
    return "today" if gate.deadline.date() == now.date() else "later"


def due_within(key: str, now: datetime) -> tuple[datetime | None, datetime | None]:
    """Return (after, until), the bounds of a group's deadlines; None: no bound."""
    hour = now + timedelta(hours=1)
    midnight = now.replace(hour=23, minute=59, second=59, microsecond=999_999)
    return {"hour": (None, hour), "today": (hour, midnight), "later": (max(hour, midnight), None)}[key]


def grouped(rows: Iterable[InboxRow]) -> list[InboxGroup]:
    """Sort rows into groups by due date; groups without rows are left out."""
    by: dict[str, list[InboxRow]] = {key: [] for key, label in GROUPS}
    for each in rows:
        by[each.group].append(each)
    return [InboxGroup(key=key, label=str(label), rows=by[key]) for key, label in GROUPS if by[key]]


def summary(groups: Sequence[InboxGroup], *, whole: Capped | None = None, filtered: bool = False) -> str:
    """Write `14 open, 3 of them due within the hour.` `whole`: how many the queue holds, where not all are shown.

    `filtered`: filters are set, so that none shown does not mean that none waits.
    """
    shown = sum(group.open for group in groups)
    soon = sum(group.open for group in groups if group.key == "hour")
    if filtered:
        return _("%(shown)s shown of %(whole)s open.") % {"shown": shown, "whole": whole}
    if not shown:
        return _("Nothing waits for you.")
    more = whole is not None and (whole.more or whole.number > shown)
    words = _("%(open)s open.")
    if soon and more:
        words = _("%(open)s open, %(soon)s of the first %(shown)s due within the hour.")
    elif soon:
        words = _("%(open)s open, %(soon)s of them due within the hour.")
    return words % {"open": whole if more else shown, "soon": soon, "shown": shown}
