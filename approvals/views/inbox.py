"""Shows the inbox, and its list, which is fetched again when a gate opens or closes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from approvals.consequences import impact_sources
from approvals.consequences.done_before import done_before
from approvals.consequences.performed import read_fates
from approvals.gates.lists import snoozing
from approvals.gates.lists.queue_filters import QueueFilters
from approvals.gates.lists.queues import ALL, DECIDED, GROUPS, MINE, MINE_DECIDED, MINE_HELD, PERSONAL
from approvals.live import page_frame
from approvals.live.page_frame import reach_of
from approvals.models import Decision, Gate, Looking, Outcome, SavedView
from approvals.policy.rules import stage_words
from approvals.presentation import inbox
from approvals.presentation.gate_facts.provenance import Provenance
from checkpoints.postgresql.capped_count import MOST, Capped

from .access import private_get, reader_of
from .lists.asked import ORDERS, QUEUES, InboxFilters, asked_for, remember
from .lists.snoozes import just_put_off

SHOWN = 40
NAMED = 3  # approved gates that have not run, by their titles
COUNTED = (MINE, GROUPS, ALL, *PERSONAL)
VIEWS = 8  # saved views whose gates are counted


@private_get
def page(request: HttpRequest) -> HttpResponse:
    """Show the inbox; `?queue=` or `?view=` names what, `?q=`, `?risk=`, `?agent=` and `?sort=` shape it."""
    context = context_of(request, opens=True)
    if snooze := just_put_off(request):  # for the notice about a gate that was just put off
        by, short = Provenance.of(snooze.gate), snoozing.shortened(snooze)
        context |= {"put_off": snooze, "put_off_by": by, "put_off_short": short}
    response = render(request, "approvals/inbox/page.html", context)
    remember(request, response, context["asked"])
    return response


@private_get
def listing(request: HttpRequest) -> HttpResponse:
    """Show the list alone."""
    return render(request, "approvals/inbox/list_update.html", context_of(request))


def context_of(request: HttpRequest, *, opens: bool = False) -> dict[str, Any]:
    user, now, reach = reader_of(request), timezone.now(), reach_of(request)
    asked, own = asked_for(request, reach, opens=opens)
    found, *closed = reach.lists((asked.queue, SHOWN + 1, asked.wanted), *just_closed(asked))
    shown, lingering = found[:SHOWN], [gate for gates in closed for gate in reversed(gates)]
    ended = [gate for gate in (shown if asked.closed else lingering) if gate.status != Gate.Status.OPEN]
    finish(ended)
    fates = read_fates(ended)
    looking = {} if asked.closed else Looking.objects.people([gate.pk for gate in shown], but=user)
    before = {} if asked.closed else impact_sources.beside(shown)
    done = {} if asked.closed else done_before(shown, reader=user)
    awaits = {} if asked.closed else stage_words.awaited(shown)
    decides = {policy for policy, *_ in (*reach.policies, *reach.lent)}
    rows = [
        inbox.row(
            gate, now=now, looking=looking.get(gate.pk, ()), repeats=before.get(gate.pk, ()),
            awaits=awaits.get(gate.pk, ""), decides=asked.queue == MINE or gate.policy_id in decides,
            found=inbox.place_of(gate, asked.wanted), fate=fates.get(gate.pk),
            done=done.get(gate.pk, ()),
        )
        for gate in shown
    ]  # fmt: skip
    leaving = [inbox.row(gate, now=now, lingering=True, fate=fates.get(gate.pk)) for gate in lingering]
    groups = grouped(asked, [*rows, *leaving])
    dated = not (asked.closed or asked.wanted.sort)
    rest = bounds(asked, groups[-1].key, now) if len(found) > SHOWN and groups and dated else []
    wholes = {queue: (queue, QueueFilters()) for queue in COUNTED}
    saved = {view.pk: _counted(view) for view in own.views[:VIEWS]}
    counted, agents = reach.figures(dict.fromkeys([*wholes.values(), *saved.values(), *rest]), agents_of=asked.queue)
    counts = {queue: counted[whole] for queue, whole in wholes.items()}
    if rest:  # the gates up to the end of the last group, but for those due before it
        total, earlier = counted[rest[0]], sum(counted[each].number for each in rest[1:])
        size = Capped(max(total.number - earlier, len(groups[-1].rows)), any(counted[each].more for each in rest))
        groups[-1] = replace(groups[-1], whole=size)
    request.waiting = counts[MINE]  # type: ignore[attr-defined]
    return {
        "queue": asked.queue, "asked": asked, "heading": asked.view or QUEUES[asked.queue][0],
        "groups": groups, "empty": QUEUES[asked.queue][2],
        "last": None if rows else next((gate.closed_at for gate in reach.gates(DECIDED, most=1)), None),
        "summary": "" if asked.closed else inbox.summary(
            groups, whole=counts.get(asked.queue), filtered=asked.filtered, dated=dated
        ),
        "here": asked.query(after=asked.wanted.after), "shown": SHOWN, "closed": asked.closed,
        "more": asked.query(after=shown[-1].pk) if len(found) > SHOWN else "",
        "unrun": unrun_of(request),
        "queues": [
            {"key": key, "label": label, "icon": icon, "count": counts.get(key),
             "current": key == asked.queue and not asked.view}
            for key, (label, icon, _) in QUEUES.items()
            if key not in PERSONAL or counts[key] or asked.queue == key  # the reader's own rows, where there are any
        ],
        "views": [(view, counted[saved[view.pk]] if view.pk in saved else None) for view in own.views],
        "mine": counts[MINE], "risks": Gate.Risk.choices, "orders": ORDERS.items(),
        "agents": sorted({*agents, asked.wanted.agent} - {""}),
        "picks": not asked.closed and any(row.pick for row in rows), "stopped": own.stopped,
        "teams_seen": list(reach.teams.items()),
    }  # fmt: skip


def unrun_of(request: HttpRequest) -> dict[str, Any]:
    """Return how many approved gates of the reader have not run, and the latest of them."""
    frame = page_frame.of(request)
    numbers = frame.unrun if frame else []
    latest = Gate.objects.filter(pk__in=numbers[:NAMED]).select_related("run__plan").order_by("-pk") if numbers else []
    named = [{"gate": gate, "provenance": Provenance.of(gate)} for gate in latest]
    return {"number": Capped(min(len(numbers), MOST), len(numbers) > MOST), "named": named, "any": bool(numbers)}


def _counted(view: SavedView) -> tuple[str, QueueFilters]:
    """Return what to count for a view. A closed queue is not counted in the rail; its own filters are."""
    asked = InboxFilters.of({}, view=view)
    return asked.queue, replace(asked.wanted, sort="")


def grouped(asked: InboxFilters, rows: list[inbox.InboxRow]) -> list[inbox.InboxGroup]:
    """Put the rows into groups: by due date, by currency, or all of them under the name of their order."""
    if not asked.closed and (not asked.wanted.sort or asked.wanted.sort in inbox.BY_CURRENCY):
        return inbox.grouped(rows, asked.wanted.sort)
    label = "Newest first" if asked.closed else ORDERS[asked.wanted.sort]
    whole = Capped(len(rows), False) if asked.closed else None  # an undo window may still be open
    return [inbox.InboxGroup(key=asked.wanted.sort or DECIDED, label=label, rows=rows, whole=whole)] if rows else []


def bounds(asked: InboxFilters, last: str, now: datetime) -> list[tuple[str, QueueFilters]]:
    """Return what to count for the size of the last group, which goes on on the next page.

    All gates up to its end, and those due before it, which are few and first in the index; those due later are neither.
    """
    after, until = inbox.due_within(last, now)
    return [(asked.queue, replace(asked.wanted, due=each)) for each in ([until, after] if after else [until])]


def finish(gates: Sequence[Gate]) -> None:
    """Prefetch how these gates ended, in two statements."""
    outcomes, decisions = Outcome.objects.select_related("proposal"), Decision.objects.select_related("user")
    prefetch_related_objects(gates, Prefetch("outcome", outcomes), Prefetch("outcome__decisions", decisions))


def just_closed(asked: InboxFilters) -> list[tuple[str, int, QueueFilters]]:
    """Say which gates left the queue seconds ago: they are shown a little longer so that nobody misses them.

    Those whose decision may still be undone are shown until it takes effect.
    """
    if asked.wanted.after or asked.queue not in (MINE, GROUPS, ALL):
        return []
    wanted = QueueFilters(
        risk=asked.wanted.risk, agent=asked.wanted.agent, words="", closed_within=inbox.LINGERS.total_seconds()
    )
    if asked.queue == ALL:
        return [(DECIDED, SHOWN, wanted)]
    return [(MINE_DECIDED, SHOWN, wanted), (MINE_HELD, SHOWN, replace(asked.wanted, after=0, sort=""))]


@private_get
def waiting(request: HttpRequest) -> HttpResponse:
    """Answer the number of gates that wait for the reader alone, as the bar at the top shows it."""
    frame = page_frame.of(request)
    return HttpResponse(str(frame.waiting if frame else 0), content_type="text/plain; charset=utf-8")
