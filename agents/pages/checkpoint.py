"""The page of a checkpoint, also as a part of the run's page, and any one value of its state in full.

People name a checkpoint, which holds it: retention never removes a named one. They leave notes on it: anyone who may
view the run may, since a note decides nothing. And they reveal a secret of its state.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse

from agents.access import Gone, checkpoint_or_404, is_fragment, run_or_404
from agents.pages.run import offered_moves
from agents.pages.run.inspector import inspector_context, notes_context, picked_of
from agents.pages.run.offered_moves import parse_number
from agents.pages.run.page import show_run_again
from approvals.gates import reveal_secret
from approvals.gates.reveal_secret import veil_of
from approvals.presentation.text import state_tree
from approvals.views.access import private_get, private_post, reader_of
from approvals.views.values import refuse_reveal, show_secret
from checkpoints import actors, store
from checkpoints.errors import CheckpointRemoved, NoSuchCheckpoint, NotVerified, ValueRefused
from checkpoints.models import Run
from checkpoints.runs import holds, notes
from checkpoints.values import json_pointer

PAGE = 200  # members of a list or an object, drawn at once
CHARACTERS = 50_000  # of a text, drawn at once: each is checked for being visible


@private_get
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


@private_get
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


@private_post
def name(request: HttpRequest, run_id: int, seq: int) -> HttpResponse:
    """Name the checkpoint as typed, or after its number. 403 for those who may only read; 422 for a name too long."""
    run, by = _run_to_name(request, run_id, seq)
    try:
        holds.name(run, seq, request.POST.get("name", ""), by=by)
    except CheckpointRemoved as gone:
        raise Gone(str(gone)) from gone
    except ValueRefused as refused:
        values = {"name_typed": request.POST.get("name", ""), "name_refused": f"The name {refused.reason}."}
        return show_run_again(request, run, reader_of(request), values, status=422, at=seq)
    return _to_inspector(run, seq)


@private_post
def unname(request: HttpRequest, run_id: int, seq: int) -> HttpResponse:
    """Remove the name; without one nothing happens. 403 for those who may only read."""
    run, by = _run_to_name(request, run_id, seq)
    holds.unname(run, seq, by=by)
    return _to_inspector(run, seq)


def _run_to_name(request: HttpRequest, run_id: int, seq: int) -> tuple[Run, actors.Actor]:
    run, reader = offered_moves.run_to_order(request, run_id)
    checkpoint_or_404(run, seq)
    return run, actors.of_user(reader)


def _to_inspector(run: Run, seq: int) -> HttpResponse:
    return redirect(f"{reverse('run', args=[run.pk])}?at={seq}#inspect")


@private_post
def add_note(request: HttpRequest, run_id: int, seq: int) -> HttpResponse:
    """Add a note to the checkpoint; 422 with the input where it is refused."""
    run, reader = run_or_404(request, run_id), reader_of(request)
    text, key = request.POST.get("text", ""), request.POST.get("key", "")
    try:
        notes.note(run, seq, text, key=key, by=actors.of_user(reader))
    except CheckpointRemoved as gone:
        raise Gone(str(gone)) from gone
    except NoSuchCheckpoint as missing:
        raise Http404("No such checkpoint") from missing
    except ValueRefused as refused:
        values = {"note_typed": text, "note_refused": refused.reason}
        return _answer_notes(request, run, seq, values, status=422)
    return _answer_notes(request, run, seq)


@private_post
def remove_note(request: HttpRequest, run_id: int, seq: int, note: int) -> HttpResponse:
    """Remove one's own note; nothing happens if it is already gone. 403 for another person's."""
    run, reader = run_or_404(request, run_id), reader_of(request)
    checkpoint_or_404(run, seq)
    try:
        notes.take_back(run, seq, note, by=actors.of_user(reader))
    except notes.NotTheirs as refused:
        raise PermissionDenied(str(refused)) from refused
    except CheckpointRemoved as gone:
        raise Gone(str(gone)) from gone
    return _answer_notes(request, run, seq)


def _answer_notes(
    request: HttpRequest, run: Run, seq: int, notice: dict[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    """Return the list alone if the page asks for a part of itself; else the page, at the checkpoint."""
    reader = reader_of(request)
    if is_fragment(request):
        checkpoint = checkpoint_or_404(run, seq)
        context = {"run": run, "checkpoint": checkpoint} | notes_context(checkpoint, reader)
        return render(request, "runs/checkpoint/notes_list.html", context | (notice or {}), status=status)
    if notice:
        return show_run_again(request, run, reader, notice, status=status, at=seq)
    return HttpResponseRedirect(f"{reverse('run', args=[run.pk])}?at={seq}#notes", status=303)


@private_post
def reveal(request: HttpRequest, run_id: int, seq: int) -> HttpResponse:
    """Show the secret at the place `at`; the audit records it. 409 where the state does not verify."""
    run, at = run_or_404(request, run_id), request.POST.get("at", "")
    checkpoint = checkpoint_or_404(run, seq)
    try:
        value = reveal_secret.of_checkpoint(run, checkpoint, at, by=reader_of(request))
    except reveal_secret.NotRevealed as refusal:
        return refuse_reveal(request, refusal)
    except NotVerified as unverified:
        context = {"run": run, "checkpoint": checkpoint, "pointer": at, "first": 0, "refused": unverified}
        return render(request, "runs/checkpoint/value.html", context, status=409)
    back = f"{reverse('checkpoint', args=[run.pk, seq])}?view=state#secrets"
    return show_secret(request, at, value, back=back, of=f"R-{run.pk}, checkpoint {seq}")
