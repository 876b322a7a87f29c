"""The jump dialog: finds pages, gates and runs by number or by the words of their rows."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from agents.access import is_fragment
from agents.runs import query
from approvals.gates.lists.queue_filters import QueueFilters
from approvals.gates.lists.queues import ALL, MINE
from approvals.live.page_frame import reach_of
from approvals.models import Gate
from approvals.presentation import topbar
from approvals.views.access import private_get, reader_of
from checkpoints.models import Run
from checkpoints.postgresql.text_search import parse_numbers, prefix_query

FOUND = 6  # of each


@dataclass(frozen=True, kw_only=True)
class JumpPlace:
    """One result. `title` is untrusted."""

    kind: str
    icon: str
    title: str
    address: str
    quoted: bool = False  # an external program wrote the title


@private_get
def page(request: HttpRequest) -> HttpResponse:
    """Show the results for `?q=`, as a page, or as the list alone for a script."""
    asked = request.GET.get("q", "").strip()[:200]
    places = [*_pages(request, asked), *_numbered(request, asked), *_gates(request, asked), *_runs(request, asked)]
    context = {"q": asked, "places": places}
    return render(request, "jump/places.html" if is_fragment(request) else "jump/page.html", context)


def _pages(request: HttpRequest, asked: str) -> list[JumpPlace]:
    known = topbar.pages(request, reader_of(request))
    return [
        JumpPlace(kind="Page", icon=item["icon"], title=item["label"], address=item["url"])
        for item in known
        if item["label"].casefold().startswith(asked.casefold())
    ]


def _numbered(request: HttpRequest, asked: str) -> list[JumpPlace]:
    """Return the gate and the run of that number that the reader may see."""
    user, (gate_id, run_id) = reader_of(request), parse_numbers(asked)
    gates = Gate.objects.visible_to(user).select_related("run__plan").filter(pk=gate_id) if gate_id else ()
    runs = Run.objects.visible_to(user).select_related("plan").filter(pk=run_id) if run_id else ()
    return [*map(_gate, gates), *map(_run, runs)]


def _gates(request: HttpRequest, asked: str) -> list[JumpPlace]:
    """Return open gates with words that begin like this; the reader's own next ones for an empty query."""
    queue = ALL if asked else MINE
    if asked and not prefix_query(asked):
        return []
    named, _ = parse_numbers(asked)  # is listed first already
    found = reach_of(request).gates(queue, most=FOUND, wanted=QueueFilters(words=asked))
    return [_gate(gate) for gate in found if gate.pk != named]


def _runs(request: HttpRequest, asked: str) -> list[JumpPlace]:
    """Return runs whose titles or gates have words that begin like this, the newest first."""
    if not prefix_query(asked):
        return []
    found = query.ids(query.RunFilters(words=asked), teams=list(reach_of(request).teams), most=FOUND)
    runs = Run.objects.select_related("plan").in_bulk(found)
    _, named = parse_numbers(asked)  # is listed first already
    return [_run(runs[item]) for item in found if item in runs and item != named]


def _run(run: Run) -> JumpPlace:
    address, quoted = reverse("run", args=[run.pk]), run.plan.external
    return JumpPlace(kind=f"Run {run}", icon="runs", title=run.title, address=address, quoted=quoted)


def _gate(gate: Gate) -> JumpPlace:
    address, quoted = reverse("gate", args=[gate.pk]), gate.run.plan.external
    return JumpPlace(kind=f"Gate {gate.pk}", icon="hold", title=gate.title, address=address, quoted=quoted)
