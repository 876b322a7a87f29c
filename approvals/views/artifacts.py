"""Serves a file that a gate's saved state or current proposal refers to, for download only.

It is somebody else's content on this site's origin, so no browser may display it as a page.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import BinaryIO

from asgiref.sync import sync_to_async
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from approvals.decisions import uploads
from approvals.models.upload import plain_name
from checkpoints.errors import NoSuchArtifact
from checkpoints.values import artifacts, patch

from .access import page_or_404, private, verified

BLOCK = 256 * 1024


@require_safe
@private
@verified
def show(request: HttpRequest, gate_id: int, digest: str) -> StreamingHttpResponse:
    """Send the content, after a check of its digest. 404 for a file that this gate does not name."""
    page = page_or_404(request, gate_id)
    standing = page.veil.masked(patch.apply(page.proposal.state_patch, page.gate.saved.state))
    asked = [action.masked for action in page.card.actions]
    reference = uploads.referenced(digest, page.saved.state, asked, standing)
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
