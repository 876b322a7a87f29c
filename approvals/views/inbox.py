"""Shows the inbox, and its list, which is fetched again when a gate opens or closes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import Prefetch, prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_safe

from approvals.consequences import impact_sources
from approvals.gates.queues import ALL, DECIDED, MINE, MINE_DECIDED, MINE_HELD, QueueFilters, ReaderReach
from approvals.live import page_frame
from approvals.live.page_frame import reach_of
from approvals.models import Decision, Gate, Looking, Outcome
from approvals.policy import stage_words
from approvals.presentation import inbox
from approvals.presentation.gate_facts.provenance import Provenance
from checkpoints.postgresql.capped_count import MOST, Capped

from .access import private, reader_of

SHOWN = 40
NAMED = 3  # approved gates that have not run, by their titles
# Queue -> (name, icon, words for an empty one).
QUEUES = {
    MINE: (gettext_lazy("Mine"), "inbox", gettext_lazy("You are all caught up")),
    ALL: (gettext_lazy("All visible to me"), "list", gettext_lazy("No gate is open just now")),
    DECIDED: (gettext_lazy("Decided"), "check", gettext_lazy("Nothing has been decided yet")),
}
SEARCHED = 200  # characters


@dataclass(frozen=True, kw_only=True)
class InboxFilters:
    """The queue and filters in an address; junk is ignored."""

    queue: str
    wanted: QueueFilters = field(default_factory=QueueFilters)

    @classmethod
    def of(cls, request: HttpRequest) -> InboxFilters:
        said = {name: request.GET.get(name, "").strip() for name in ("queue", "risk", "agent", "q", "after")}
        after = said["after"]
        return cls(
            queue=said["queue"] if said["queue"] in QUEUES else MINE,
            wanted=QueueFilters(
                risk=said["risk"] if said["risk"] in Gate.Risk.values else "",
                agent=said["agent"][:100],
                words=said["q"][:SEARCHED],
                after=int(after) if after.isascii() and after.isdigit() and len(after) < 19 else 0,
            ),
        )

    @property
    def filtered(self) -> bool:
        return bool(self.wanted.risk or self.wanted.agent or self.wanted.words)

    def query(self, *, after: int = 0) -> str:
        """Write these filters as an address's query; `after`: for the page that follows that gate."""
        wanted = self.wanted
        said = {"queue": self.queue, "risk": wanted.risk, "agent": wanted.agent, "q": wanted.words, "after": after}
        return urlencode({name: value for name, value in said.items() if value})


@require_safe
@private
def page(request: HttpRequest) -> HttpResponse:
    """Show the inbox; `?queue=` names another queue than one's own, `?q=`, `?risk=` and `?agent=` filter it."""
    return render(request, "approvals/inbox/page.html", context_of(request))


@require_safe
@private
def listing(request: HttpRequest) -> HttpResponse:
    """Show the list alone."""
    return render(request, "approvals/inbox/list_update.html", context_of(request))


def context_of(request: HttpRequest) -> dict[str, Any]:
    user, now, asked, reach = reader_of(request), timezone.now(), InboxFilters.of(request), reach_of(request)
    found, *closed = reach.lists((asked.queue, SHOWN + 1, asked.wanted), *just_closed(asked))
    shown, lingering = found[:SHOWN], [gate for gates in closed for gate in reversed(gates)]
    finish(shown if asked.queue == DECIDED else lingering)
    looking = {} if asked.queue == DECIDED else Looking.objects.people([gate.pk for gate in shown], but=user)
    before = {} if asked.queue == DECIDED else impact_sources.beside(shown)
    awaits = {} if asked.queue == DECIDED else stage_words.awaited(shown)
    rows = [
        inbox.row(
            gate, now=now, looking=looking.get(gate.pk, ()), repeats=before.get(gate.pk, ()),
            awaits=awaits.get(gate.pk, ""),
        )
        for gate in shown
    ]  # fmt: skip
    if asked.queue != DECIDED:
        rows += [inbox.row(gate, now=now, lingering=True) for gate in lingering]
        groups = inbox.grouped(rows)
    else:
        groups = [inbox.InboxGroup(key=DECIDED, label=gettext("Newest first"), rows=rows)] if rows else []
    rest = bounds(asked, groups[-1].key, now) if len(found) > SHOWN and groups else []
    wholes = {queue: (queue, QueueFilters()) for queue in (MINE, ALL)}
    counted, agents = reach.figures(dict.fromkeys([*wholes.values(), *rest]), agents_of=asked.queue)
    counts = {queue: counted[whole] for queue, whole in wholes.items()}
    if rest:
        groups[-1] = replace(groups[-1], whole=within([counted[each] for each in rest], least=len(groups[-1].rows)))
    request.waiting = counts[MINE]  # type: ignore[attr-defined]
    return {
        "queue": asked.queue, "asked": asked, "heading": QUEUES[asked.queue][0],
        "groups": groups, "empty": QUEUES[asked.queue][2], "last": None if rows else last_closed(reach),
        "summary": inbox.summary(groups, whole=counts.get(asked.queue), filtered=asked.filtered)
        if asked.queue != DECIDED else "",
        "here": asked.query(after=asked.wanted.after), "shown": SHOWN,
        "more": asked.query(after=shown[-1].pk) if len(found) > SHOWN else "",
        "queues": [
            {"key": key, "label": label, "icon": icon, "count": counts.get(key), "current": key == asked.queue}
            for key, (label, icon, _) in QUEUES.items()
        ],
        "unrun": unrun_of(request),
        "mine": counts[MINE], "risks": Gate.Risk.choices,
        "agents": sorted({*agents, asked.wanted.agent} - {""}),
    }  # fmt: skip


def unrun_of(request: HttpRequest) -> dict[str, Any]:
    """Return how many approved gates of the reader have not run, and the latest of them."""
    frame = page_frame.of(request)
    numbers = frame.unrun if frame else []
    latest = Gate.objects.filter(pk__in=numbers[:NAMED]).select_related("run__plan").order_by("-pk") if numbers else []
    named = [{"gate": gate, "provenance": Provenance.of(gate)} for gate in latest]
    return {"number": Capped(min(len(numbers), MOST), len(numbers) > MOST), "named": named, "any": bool(numbers)}


def bounds(asked: InboxFilters, last: str, now: datetime) -> list[tuple[str, QueueFilters]]:
    """Return what to count for the size of the last group, which goes on on the next page: see `within`.

    All gates up to its end, and those due before it, which are few and first in the index; those due later are neither.
    """
    after, until = (None, None) if asked.queue == DECIDED else inbox.due_within(last, now)
    return [(asked.queue, replace(asked.wanted, due=each)) for each in ([until, after] if after else [until])]


def within(counts: list[Capped], *, least: int) -> Capped:
    """Subtract the gates due before a group from those up to its end."""
    total, before = counts[0], sum(each.number for each in counts[1:])
    return Capped(max(total.number - before, least), any(each.more for each in counts))


def finish(gates: list[Gate]) -> None:
    """Prefetch how these gates ended, in two statements."""
    outcomes, decisions = Outcome.objects.select_related("proposal"), Decision.objects.select_related("user")
    prefetch_related_objects(gates, Prefetch("outcome", outcomes), Prefetch("outcome__decisions", decisions))


def just_closed(asked: InboxFilters) -> list[tuple[str, int, QueueFilters]]:
    """Say which gates left the queue seconds ago: they are shown a little longer so that nobody misses them.

    Those whose decision may still be undone are shown until it takes effect.
    """
    if asked.wanted.after or asked.queue == DECIDED:
        return []
    wanted = QueueFilters(
        risk=asked.wanted.risk, agent=asked.wanted.agent, words="", closed_within=inbox.LINGERS.total_seconds()
    )
    if asked.queue != MINE:
        return [(DECIDED, SHOWN, wanted)]
    return [(MINE_DECIDED, SHOWN, wanted), (MINE_HELD, SHOWN, replace(asked.wanted, after=0))]


def last_closed(reach: ReaderReach) -> Any:
    """Return when the last gate that this person may see closed; None for none."""
    return next((gate.closed_at for gate in reach.gates(DECIDED, most=1)), None)
