"""The page of a checkpoint, also as a part of the run's page, and any one value of its state in full."""

from __future__ import annotations

from itertools import islice
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from agents.queries.access import is_fragment, private, reader_of, run_or_404
from agents.queries.checkpoint import checkpoint_or_404
from agents.views.run_page import offered_moves
from agents.views.run_page.inspector import inspector_context
from agents.views.run_page.run import picked_of
from agents.views.run_page.typed_order import parse_number
from approvals.gates.state_secrets import veil_of
from approvals.presentation.text import state_tree
from checkpoints import store
from checkpoints.errors import NotVerified, ValueRefused
from checkpoints.values import json_pointer

PAGE = 200  # members of a list or an object, drawn at once
CHARACTERS = 50_000  # of a text, drawn at once: each is checked for being visible


@require_safe
@private
def page(request: HttpRequest, run_id: int, seq: int) -> HttpResponse:
    """Show the checkpoint as a page, or as a part if a page asks for it."""
    run = run_or_404(request, run_id)
    picked = picked_of(request)
    reader = reader_of(request)
    allowed = offered_moves.allowed(run, reader)
    context = inspector_context(run, type(picked)(seq, picked.view, picked.to), reader=reader, allowed=allowed)
    neighbours = {"newer": seq + 1 if seq < run.seq else 0, "older": seq - 1 if seq > 1 else 0, "alone": True}
    template = "runs/checkpoint/inspector.html" if is_fragment(request) else "runs/checkpoint/page.html"
    return render(request, template, context | neighbours)


@require_safe
@private
def value(request: HttpRequest, run_id: int, seq: int, pointer: str) -> HttpResponse:
    """Show one value of the state in full: the one at the path's JSON Pointer, followed by that of `?at=`.

    With `&tree=1` show what is inside it, for a branch of the tree that was opened.
    """
    run = run_or_404(request, run_id)
    checkpoint = checkpoint_or_404(run, seq)
    pointer += request.GET.get("at", "")
    first = parse_number(request.GET.get("from", ""))
    context: dict[str, Any] = {"run": run, "checkpoint": checkpoint, "pointer": pointer, "first": first}
    part = bool(request.GET.get("tree"))
    try:
        found = json_pointer.find_value(veil_of(checkpoint).masked(store.load_checkpoint(checkpoint.id).state), pointer)
    except NotVerified as refused:
        if part:
            return render(request, "partials/branch.html", {"refused": refused})
        return render(request, "runs/checkpoint/value.html", context | {"refused": refused})
    except ValueRefused as missing:
        raise Http404("No such value") from missing
    if part and isinstance(found, (dict, list)):
        whole = reverse("checkpoint-value", args=[run.pk, seq])
        return render(
            request, "partials/branch.html", {"drawn": state_tree.branch(found, pointer=pointer, whole=whole)}
        )
    if isinstance(found, str):
        shown_text = found[first : first + CHARACTERS]
        more = first + CHARACTERS if len(found) > first + CHARACTERS else 0
        last = first + len(shown_text)
        context |= {"total": len(found), "unit": "characters", "more": more, "last": last, "text": shown_text}
    elif isinstance(found, (dict, list)):
        shown = members(found, first, PAGE)
        address = reverse("checkpoint-value", args=[run.pk, seq, *filter(None, [pointer])])
        more = first + PAGE if len(found) > first + PAGE else 0
        context |= {"members": shown, "total": len(found), "more": more, "whole": address, "last": first + len(shown)}
    return render(request, "runs/checkpoint/value.html", context | {"value": found})


def members(value: dict[str, Any] | list[Any], first: int, count: int) -> dict[str, Any]:
    """Return `count` members of a list or an object from `first` on, by name; a list's by index."""
    if isinstance(value, list):
        return {str(first + place): item for place, item in enumerate(value[first : first + count])}
    return dict(islice(value.items(), first, first + count))
