"""Shows what a gate asks over: one value of its saved state in full, a secret that is revealed, a file."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any, BinaryIO

from asgiref.sync import sync_to_async
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import content_disposition_header

from approvals.decisions import edit
from approvals.forms.texts import as_json
from approvals.gates import reveal_secret
from approvals.models.upload import plain_name
from approvals.presentation.gate_page.page import GatePage
from approvals.presentation.text import files, state_tree, untrusted
from checkpoints.errors import NoSuchArtifact, NoSuchCheckpoint, NotVerified, ValueRefused
from checkpoints.values import artifacts, json_pointer, patch

from .access import gate_get, gate_or_404, gate_post, number_in, page_or_404, reader_of

PART = 50_000  # characters of one value on one page
BLOCK = 256 * 1024


@gate_get
def value(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Show one value of the saved state in full, a part at a time: `?at=<JSON Pointer>&from=<character>`.

    With `&action=<id>`, one of that action's current arguments; with `&tree=1`, the inside of a branch that was opened
    in the tree.
    """
    page, at = page_or_404(request, gate_id), request.GET.get("at", "")
    if request.GET.get("tree"):
        return _branch(request, page, at)
    action = page.card.action(request.GET["action"]) if "action" in request.GET else None
    if action is None and "action" in request.GET:
        raise Http404("No such action")
    shown = action.masked if action else page.saved.state
    try:
        found = json_pointer.find_value(shown, at)
    except ValueRefused as gone:
        raise Http404("No such value") from gone
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, indent=2)
    first = number_in(request.GET.get("from", "0"), 11) or 0
    last = min(first + PART, len(text))
    context = {
        "gate": page.gate, "at": at, "action": action, "total": f"{len(text):,}",
        "shown": untrusted.render(text[first:last], clamp=False, value=True, part=True),
        "first": f"{first + 1:,}", "last": f"{last:,}", "before": max(first - PART, 0) if first else None,
        "after": last if last < len(text) else None,
    }  # fmt: skip
    return render(request, "approvals/values/value.html", context)


def _branch(request: HttpRequest, page: GatePage, at: str) -> HttpResponse:
    try:
        found = json_pointer.find_value(page.saved.state, at)
        whole, files_at = reverse("gate_value", args=[page.gate.pk]), files.address(page.gate.pk)
        drawn = state_tree.branch(found, pointer=at, whole=whole, files_at=files_at)
    except (NotVerified, NoSuchCheckpoint) as refused:
        return render(request, "partials/branch.html", {"refused": refused})
    except (ValueRefused, LookupError) as gone:
        raise Http404("No such value") from gone
    return render(request, "partials/branch.html", {"drawn": drawn})


@gate_post
def reveal(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Show the secret at the place `at`, and record that in the audit."""
    gate, at = gate_or_404(request, gate_id), request.POST.get("at", "")
    try:
        value = reveal_secret.of_gate(gate, at, by=reader_of(request))
    except reveal_secret.NotRevealed as refusal:
        return refuse_reveal(request, refusal)
    back, of = reverse("gate", args=[gate_id]) + "#secrets", f"Gate {gate_id}"
    return show_secret(request, at, value, back=back, of=of)


def show_secret(request: HttpRequest, at: str, value: Any, *, back: str, of: str) -> HttpResponse:
    """Show the secret: as a fragment for a page that inserts it, else on a page of its own."""
    text = value if isinstance(value, str) else as_json(value)
    drawn = untrusted.render(text, clamp=False, value=True)
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(drawn)
    return render(request, "approvals/values/revealed.html", {"at": at, "shown": drawn, "back": back, "of": of})


def refuse_reveal(request: HttpRequest, refusal: reveal_secret.NotRevealed) -> HttpResponse:
    """Answer 403 to people who may not, 404 where nothing is secret."""
    if isinstance(refusal, reveal_secret.RevealNotAllowed):
        return render(request, "approvals/values/not_revealed.html", {"why": str(refusal)}, status=403)
    raise Http404(str(refusal))


@gate_get
def send_file(request: HttpRequest, gate_id: int, digest: str) -> StreamingHttpResponse:
    """Send the content, after a check of its digest. 404 for a file that this gate does not name."""
    page = page_or_404(request, gate_id)
    standing = page.veil.masked(patch.apply(page.proposal.state_patch, page.gate.saved.state))
    asked = [action.masked for action in page.card.actions]
    reference = edit.referenced(digest, page.saved.state, asked, standing)
    if reference is None:
        raise Http404("No such file at this gate")
    held = ExitStack()
    try:
        file = held.enter_context(artifacts.opened(reference))
    except NoSuchArtifact as gone:
        raise Http404(str(gone)) from gone
    name = reference.get("name")
    called = plain_name(name if isinstance(name, str) else "") or digest
    response = StreamingHttpResponse(_Blocks(file, held), content_type="application/octet-stream")
    response["Content-Disposition"] = content_disposition_header(True, called) or "attachment"
    response["Content-Length"] = str(reference["size"])
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["X-Content-Type-Options"] = "nosniff"
    return response


class _Blocks:
    """The blocks of a file, read on a thread while they are sent. Django would hold all of a plain iterator."""

    def __init__(self, file: BinaryIO, held: ExitStack) -> None:
        self.file, self.close = file, held.close

    def __aiter__(self) -> _Blocks:
        return self

    async def __anext__(self) -> bytes:
        block: bytes = await sync_to_async(self.file.read)(BLOCK)
        if not block:
            raise StopAsyncIteration
        return block
