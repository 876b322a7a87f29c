"""Access to a run and its checkpoints: for members of its team who may view runs. Anybody else gets a 404.

And who asks, from where.
"""

from __future__ import annotations

import ipaddress
from contextlib import suppress
from typing import Any

from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest

from approvals.views.access import reader_of
from checkpoints.access.permissions import PersonKind, kind_of
from checkpoints.errors import CheckpointRemoved
from checkpoints.models import Checkpoint, Run
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.store import gaps


class Gone(Http404):
    """A page that existed and is gone; the message says why. Answered with 410."""


def run_or_404(request: HttpRequest, run_id: int) -> Run:
    """Return the run, if the reader may see it."""
    reader = reader_of(request)
    found = _visible(run_id, reader.pk, kind=kind_of(reader))
    if not found:
        raise Http404("No such run")
    return found[0]


@prepared_statement
def _visible(run: Any, reader: Any, *, kind: PersonKind) -> QuerySet[Run]:
    """Read a run, if the reader may see it."""
    return Run.objects.visible_to(kind.person(reader)).select_related("plan", "team", "started_by").filter(pk=run)


def checkpoint_or_404(run: Run, seq: int) -> Checkpoint:
    """Return the run's checkpoint of that number, without its payload."""
    return with_parent_or_404(run, seq)[0]


def with_parent_or_404(run: Run, seq: int) -> tuple[Checkpoint, Checkpoint | None]:
    """Return the run's checkpoint of that number and its parent, without their payloads."""
    here = Checkpoint.objects.filter(run=run, seq=seq)
    both = Checkpoint.objects.filter(Q(run=run, seq=seq) | Q(pk__in=here.values("parent")))
    rows = list(both.with_names().defer("payload").select_related("plan"))
    checkpoint = next((row for row in rows if (row.run_id, row.seq) == (run.pk, seq)), None)
    if checkpoint is None:
        gap = gaps.over(run.pk, seq)
        raise Gone(str(CheckpointRemoved(gap, seq))) if gap else Http404("No such checkpoint")
    return checkpoint, next((row for row in rows if row is not checkpoint), None)


def is_fragment(request: HttpRequest) -> bool:
    """Tell whether a page asks for a part of itself."""
    return request.headers.get("HX-Request") == "true"


def address_of(request: HttpRequest) -> str:
    """Return the address that a request comes from: of IPv6 the /64 network, which is what one household gets."""
    words = str(request.META.get("REMOTE_ADDR", ""))
    with suppress(ValueError):
        found = ipaddress.ip_address(words)
        if isinstance(found, ipaddress.IPv6Address):
            return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
    return words
