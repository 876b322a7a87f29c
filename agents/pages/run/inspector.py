"""The inspector: the changes of one checkpoint, or its whole state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from secrets import token_hex
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse

from agents.access import checkpoint_or_404, with_parent_or_404
from agents.models import OpenResource
from agents.pages.differences import difference_context
from agents.pages.run import offered_moves
from agents.pages.run.offered_moves import TypedOrder, parse_number
from approvals.gates import reveal_secret
from approvals.gates.reveal_secret import veil_of
from checkpoints import actors, store
from checkpoints.errors import NoSuchCheckpoint, NotVerified
from checkpoints.models import Checkpoint, Event, Run
from checkpoints.runs import notes
from checkpoints.runs.plans import spec_of
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.digests import shorten_digest

INNER = "x-inner"  # in a field's schema: a framework keeps its own record in it
SECRETS = 100  # named on one page
VIEWS = ("changes", "state")
MOVING = (Run.Status.QUEUED, Run.Status.RUNNING)


@dataclass(frozen=True, slots=True)
class PickedCheckpoint:
    """The reader's choice: a checkpoint by its number (0: follow the head), and how it is shown."""

    at: int = 0
    view: str = "changes"
    to: int = 0
    before: int = 0
    all: int = 0  # 1: every effect, not only the newest

    def query(self, **more: object) -> str:
        """Return the choice as a query string, with `more` set over it; empty for the defaults."""
        view = "" if self.view == "changes" else self.view
        chosen = {"at": self.at, "view": view, "to": self.to, "before": self.before, "all": self.all} | more
        result = urlencode({name: value for name, value in chosen.items() if value})
        return f"?{result}" if result else ""


def picked_of(request: HttpRequest) -> PickedCheckpoint:
    """Return the reader's choice in the address; anything that is not a number is ignored."""
    at, to, before, all = (parse_number(request.GET.get(name, "")) for name in ("at", "to", "before", "all"))
    view = request.GET.get("view", "")
    return PickedCheckpoint(at, view if view in VIEWS else "changes", to, before, min(all, 1))


def _among(known: Sequence[Checkpoint], run: Run, seq: int) -> Checkpoint | None:
    return next((row for row in known if (row.run_id, row.seq) == (run.pk, seq)), None)


def checkpoint_among(known: Sequence[Checkpoint], run: Run, seq: int) -> tuple[Checkpoint, Checkpoint | None] | None:
    """Return the checkpoint of that number and its parent, if both are in `known`."""
    checkpoint = _among(known, run, seq)
    parent = next((item for item in known if checkpoint and item.id == checkpoint.parent), None)
    return (checkpoint, parent) if checkpoint and (parent or checkpoint.parent is None) else None


def inspector_context(
    run: Run,
    picked: PickedCheckpoint,
    *,
    reader: User,
    allowed: bool,
    order: TypedOrder | None = None,
    known: Sequence[Checkpoint] = (),
    events: Sequence[Event] | None = None,
) -> dict[str, Any]:
    """Return the context of runs/checkpoint/inspector.html: the checkpoint `picked.at`, or the newest.

    `order` is the input. `known` are checkpoints that were read already, `events` those that hold the notes on it.

    A rewind's impact is computed only for an `order` of somebody who is `allowed` to give one: it takes the whole
    history. While a run is under way and the page follows its head, the impact would be outdated at once.
    """
    if not picked.at and not run.seq:
        return {"run": run, "checkpoint": None}
    wanted = picked.at or run.seq
    checkpoint, parent = checkpoint_among(known, run, wanted) or with_parent_or_404(run, wanted)
    follows = not picked.at and run.status in MOVING
    picked = replace(picked, at=checkpoint.seq)
    against = _among(known, run, picked.to) or (checkpoint_or_404(run, picked.to) if picked.to else parent)
    if against is None:
        picked = replace(picked, view="state")
    context: dict[str, Any] = {
        "run": run,
        "checkpoint": checkpoint,
        "digest": shorten_digest(bytes(checkpoint.digest)),
        "choices": list(_choices(run, checkpoint, parent, picked)),
        "picked": picked,
        "view": picked.view,  # the first checkpoint has no parent to compare with, whatever was picked
        "against": against,
        "whole": reverse("checkpoint-value", args=[run.pk, checkpoint.seq]),
        "page": reverse("run", args=[run.pk]) + picked.query(),
        "name": getattr(checkpoint, "named", ""),
        "compare_hint": f"{max(checkpoint.seq - 1, 1)} or {run.pk}.{max(checkpoint.seq - 1, 1)}",
    }
    context |= notes_context(checkpoint, reader, events) | {"follows_head": follows}
    # The page's preflight reads the head, too.
    store.expect(id for id in (run.head, checkpoint.id, against.id if against else None) if id)
    try:
        context |= _contents(checkpoint, against if picked.view == "changes" else None)
        context["held"] = [
            (row.name, encode_canonical(row.content).decode()) for row in OpenResource.objects.described_at(checkpoint)
        ]
    except NotVerified as refused:
        return context | {"refused": refused}
    if context["places"]:
        context["may_reveal"] = reveal_secret.may(reader, run.team_id)
    if follows or not allowed:
        return context | {"follows": allowed}
    return context | (offered_moves.panel(run, checkpoint, order) if order else {"may_order": True})


def notes_context(checkpoint: Checkpoint, reader: User, events: Sequence[Event] | None = None) -> dict[str, Any]:
    """Return the context of runs/checkpoint/notes.html: the notes, from `events` if those were read already."""
    if events is not None:
        about = notes.subject_of(checkpoint.id)
        events = [event for event in events if event.subject == about]
    found = notes.standing(notes.of_checkpoint(checkpoint.id) if events is None else events)
    return {"notes_standing": found, "note_reader": actors.of_user(reader).id, "note_key": token_hex(16)}


def _contents(checkpoint: Checkpoint, against: Checkpoint | None) -> dict[str, Any]:
    """Return the state, or its difference to another: of fields whose digests differ. Raises NotVerified."""
    shown = store.load_checkpoint(checkpoint.id)
    veil = veil_of(checkpoint)
    values: dict[str, Any] = {
        "size": format_size(shown.size),
        "places": list(islice(veil.places(shown.state), SECRETS)),
    }
    if against is None:
        written, marked = set(shown.state), dict[str, str]()
        with suppress(NoSuchCheckpoint):  # its parent was removed, so its own writes are unknown
            if checkpoint.parent:
                before = store.load_checkpoint(checkpoint.parent)
                written = {name for name, digest in shown.fields.items() if before.fields.get(name) != digest}
                marked = dict.fromkeys(written, "written here")
        values |= {"state": veil.masked(shown.state), "notes": marked}
        return values | {"open": written if len(written) <= 3 else set()}
    before = store.load_checkpoint(against.id)
    names = shown.differing(before)
    values |= difference_context(before.state, shown.state, names, veil, veil_of(against), inner=inner_of(checkpoint))
    values |= {"whole_before": reverse("checkpoint-value", args=[against.run_id, against.seq])}
    values |= {"whole_after": reverse("checkpoint-value", args=[checkpoint.run_id, checkpoint.seq])}
    return values | {"same": len(shown.fields.keys() - names)}


def _choices(
    run: Run, checkpoint: Checkpoint, parent: Checkpoint | None, picked: PickedCheckpoint
) -> Iterator[tuple[str, PickedCheckpoint, bool]]:
    """Yield the views: the difference to the parent, to the branch that a rewind left, and the whole state.

    For each its label, what it picks, and whether it is the present one.
    """
    at = PickedCheckpoint(at=checkpoint.seq)
    if parent:
        origin = f"its origin in R-{parent.run_id}"
        label = f"Difference to {parent.seq if parent.run_id == run.pk else origin}"
        yield label, at, picked.view == "changes" and not picked.to
    left = checkpoint.seq - 1
    if parent and parent.run_id == run.pk and parent.seq != left:
        label = f"Difference to {left}, on the abandoned branch"
        yield label, replace(at, to=left), picked.to == left
    elif picked.to:
        yield f"Difference to {picked.to}", picked, picked.view == "changes"
    yield "Whole state", replace(at, view="state"), picked.view == "state"


def format_size(count: int) -> str:
    """Return `count` bytes in decimal units: "512 B", "16.9 kB", "3.2 MB"."""
    if count < 1000:
        return f"{count} B"
    amount = count / 1000
    if amount < 1000:
        return f"{amount:.1f} kB"
    return f"{amount / 1000:.1f} MB"


def inner_of(checkpoint: Checkpoint) -> set[str]:
    """Return the fields in which a framework keeps its own record. Needs the checkpoint's plan."""
    known = spec_of(checkpoint.plan).state_schema.get("properties", {})
    return {name for name, part in known.items() if isinstance(part, dict) and part.get(INNER)}
