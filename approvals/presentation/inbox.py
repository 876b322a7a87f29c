"""The inbox: open gates as rows, grouped by due date, by currency, or under the name of their order.

A row is drawn from what `_drawn` is given and nothing else, so that one which is the same for many readers and requests
is drawn once. Who may see it is decided before, by each request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from threading import RLock
from typing import Any

from cachetools import LRUCache, cached
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

from approvals.assignments import claims
from approvals.cards.card import Card, card_of
from approvals.consequences import verbs
from approvals.consequences.done_before import DoneBefore
from approvals.consequences.performed import OutcomeFate
from approvals.gates.lists.queue_filters import QueueFilters, found_in
from approvals.impact.result import Repeat
from approvals.models import Gate
from approvals.policy import bulk
from approvals.presentation.drawing import times
from approvals.presentation.drawing.times import moment
from approvals.presentation.gate_facts import agreement
from approvals.presentation.gate_facts.provenance import Provenance
from approvals.presentation.text.exact_call import AT_GATE
from checkpoints.postgresql.capped_count import Capped
from checkpoints.postgresql.text_search import WORD, words_of

from .gate_facts import outcomes
from .gate_page.earlier import say_done
from .text import amounts, size_limit, untrusted

DRAWN = 4_000_000  # characters of rows that a process caches, with the cards that they show
COLUMNS = ("title", "risk", "kind", "proposal", "attempt", "reader_holds")  # that a row shows as they were read

LINGERS = timedelta(seconds=8)  # time for which a decided row stays in sight
FRESH = timedelta(seconds=20)
GROUPS = (
    ("hour", "Due within the hour"),
    ("today", "Later today"),
    ("later", "Later"),
)
BY_CURRENCY = {  # order in which each currency is a group of its own -> the group's name, and that of the rest
    "amount": ("{}, the largest first", "No amount in one currency"),
    "delay": ("{} an hour, the costliest first", "No cost of delay stated"),
}


@dataclass(frozen=True, kw_only=True)
class InboxRow:
    """One gate in a list."""

    gate: Gate
    group: str  # one of GROUPS
    open: bool  # and waits for somebody of this queue
    pick: bool  # the reader may select it for a bulk decision
    shown: tuple[tuple[str, Any], ...]  # what its HTML shows beside its card

    @property
    def html(self) -> SafeString:
        return _drawn(bytes(self.gate.card), self.shown)[0]


@dataclass(frozen=True, kw_only=True)
class InboxGroup:
    """Rows that are due about the same time."""

    key: str
    label: str
    rows: Sequence[InboxRow]
    whole: Capped | None = None  # the size of the group, where it goes on on the next page

    @property
    def open(self) -> int:
        return sum(row.open for row in self.rows)

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
    """Read a gate's row. `lingering`: just decided, disappears soon. `repeats`: effects that an approval repeats.

    `looking`: other people who have its page in sight; `awaits`: whose approval is needed now, where a policy has
    roles; `decides`: the reader may select it for a bulk decision; `found`: where the words of a search are in it, if
    the row does not show them; `fate`: what became of a closed gate's outcome; `done`: what other runs did that is like
    this.
    """
    is_open = gate.status == Gate.Status.OPEN
    ended = None if is_open else outcomes.ended(gate, fate=fate)
    group, provenance = due(gate, now), Provenance.of(gate)
    put_off, holder = getattr(gate, "snoozed_until", None), claims.holder_of(gate) if is_open else None
    pick = decides and is_open and not gate.reader_decided and not lingering
    left = LINGERS - (now - gate.closed_at) if lingering and gate.closed_at else timedelta(0)
    shown: dict[str, Any] = {name: getattr(gate, name) for name in COLUMNS} | {
        "number": gate.pk,
        "group": group,
        "provenance": provenance,
        "state": ended.state if ended else "open",
        "ended": ended.words if ended else "",
        "icon": ended.icon if ended else "",
        "became": ended.became if ended else None,
        "held": agreement.short(gate),
        "held_until": times.element(gate.settles_at, "countdown"),
        "opened": times.element(gate.opened_at, "ago"),
        "closed": times.element(ended.at if ended else None, "ago"),
        "deadline": times.element(gate.deadline, "until" if group == "hour" else "clock"),
        "snoozed": times.element(put_off, "clock") if put_off and is_open else "",
        "fresh": is_open and now - gate.opened_at < FRESH,
        "leaves_in": max(int(left.total_seconds()) + 1, 1) if lingering and ended else 0,
        "said": gate.reader_decided and not lingering,
        "awaits": awaits if is_open else "",
        "pick": pick,
        "alike": bulk.kind_of(gate) if pick else "",
        "alone": bulk.why_alone(gate) if pick else "",
        "currency": gate.amount_currency,
        "value": str(gate.amount_value) if gate.amount_currency else "",
        "looking": tuple(map(untrusted.person, looking)),
        "holder": untrusted.person(holder) if holder else "",
        "found": found,
        "done": tuple(say_done(each, gate.asked.resource, outside=provenance.outside) for each in done),
        "before": tuple(verbs.done(each, at=moment(each.at), here=gate.run_id) for each in repeats),
    }
    open_here = is_open and not lingering
    return InboxRow(gate=gate, group=group, open=open_here, pick=pick, shown=tuple(shown.items()))


@cached(LRUCache(DRAWN, itemgetter(1)), lock=RLock())
def _drawn(asked: bytes, shown: tuple[tuple[str, Any], ...]) -> tuple[SafeString, int]:
    """Return a row as HTML, and what it takes of the cache. `asked`: the card, as it is saved."""
    before, row = size_limit.asked(), dict(shown)
    provenance: Provenance = row["provenance"]
    card = card_of(asked, external=lambda: provenance.outside)
    delay = card.cost_of_delay
    row |= {
        "card": card,
        "risk_label": Gate.Risk(row["risk"]).label,
        "risk_theirs": provenance.sets_risk(card),
        "amount": provenance.amount(card, masked=AT_GATE),
        "differs": bool(provenance.unsupported(card)),  # its words name what no argument supports
        "delayed": amounts.written(delay["amount"], delay["currency"]) if delay else "",
    }
    html = render_to_string("approvals/inbox/row.html", {"row": row})
    alike = size_limit.asked() == before  # marks of untrusted texts are drawn as the page has room
    return html, len(html) + len(asked) if alike else DRAWN + 1


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


def grouped(rows: Sequence[InboxRow], sort: str) -> list[InboxGroup]:
    """Put rows into groups: by due date without `sort`, else by currency, as amounts of two cannot be compared.

    Groups without rows are left out.
    """
    if not sort:
        due_about = [(key, label, [row for row in rows if row.group == key]) for key, label in GROUPS]
        return [InboxGroup(key=key, label=label, rows=own) for key, label, own in due_about if own]
    by: dict[str, list[InboxRow]] = {}
    for each in rows:
        delay = each.gate.asked.cost_of_delay
        unit = each.gate.amount_currency if sort == "amount" else str(delay["currency"]) if delay else ""
        by.setdefault(unit, []).append(each)
    named, rest = BY_CURRENCY[sort]
    return [
        InboxGroup(key=unit.lower() or "none", label=named.format(unit) if unit else rest, rows=own)
        for unit, own in by.items()
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


def place_of(gate: Gate, wanted: QueueFilters) -> str:
    """Return `order.note`, or `person`, for the words of a search that its row does not show; "" where it shows all."""
    words = [word.casefold() for word in words_of(wanted.words)]
    if not words:
        return ""
    card = gate.asked
    shown = _words(f"{card.title} {card.for_whom} {card.resource} {card.amount}") | {str(gate.pk), str(gate.run_id)}
    left = [word for word in words if not any(each.startswith(word) for each in shown)]
    places = [_place(card, word) or "person" for word in left]
    return ", ".join(dict.fromkeys(places))


def _place(card: Card, word: str) -> str:
    for action in card.actions:
        if any(each.startswith(word) for each in _words(action.tool)):
            return action.tool
        for path, text in found_in(action.masked_in_messages):
            if any(each.startswith(word) for each in _words(text)):
                return path or action.id
    return ""


def _words(text: str) -> set[str]:
    return {word.casefold() for word in WORD.findall(text)}
