"""The page that shows any two checkpoints of a lineage side by side."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from agents import comparison
from agents.access import run_or_404
from agents.effects.fates import TimelineMark
from agents.pages.differences import difference_context
from agents.pages.run import marks
from agents.pages.run.marks import format_duration
from approvals.gates.reveal_secret import veil_of
from approvals.models import Gate, Outcome
from approvals.views.access import private_get
from checkpoints import store
from checkpoints.errors import NotVerified
from checkpoints.models import Checkpoint
from checkpoints.runs.plans import spec_of
from checkpoints.store.loading import CheckpointHeader

KINDS = {
    "input": marks.GIVEN,
    "reused": marks.REUSED,
    "skipped": marks.SKIPPED,
    "rewind": marks.REWIND,
    "edit": marks.EDIT,
    "repair": marks.REPAIR,
    "upcast": marks.UPCAST,
    "recovery": marks.RECOVERED[""],
    "reopen": marks.REOPENED,
    "asked": marks.ASKED,
    "answered": marks.ANSWERED,
    "fork": marks.FORK,
}
# Kinds that are shown by the title of their step.
NAMED = ("step", "gate", "asked", "answered", "reused", "skipped", "recovery", "reopen")


@private_get
def page(request: HttpRequest, run_id: int) -> HttpResponse:
    """Compare two checkpoints, `?a=` and `?b=`: each by its number in this run, or as run.number."""
    run = run_or_404(request, run_id)
    asked = {letter: request.GET.get(letter, "").strip() for letter in "ab"}
    context: dict[str, Any] = {"run": run, "asked": asked}
    status = 200
    if all(asked.values()):
        try:
            context |= comparison_context(*(comparison.checkpoint_named(request, run, text) for text in asked.values()))
        except Http404:
            context, status = context | {"missing": True}, 404
    return render(request, "runs/comparison/page.html", context, status=status)


def comparison_context(a: Checkpoint, b: Checkpoint) -> dict[str, Any]:
    """Return the context of runs/comparison/page.html. 404 if the two belong to different lineages."""
    found = comparison.parting(a, b)
    sides = [comparison.side("A", a, found.to_a), comparison.side("B", b, found.to_b)]
    straight = bool(found.to_a) != bool(found.to_b)
    context: dict[str, Any] = {
        "sides": [_drawn_side(item) for item in sides],
        "ancestor": found.ancestor,
        "apart": format_duration(abs(b.at - a.at)),
        "before": [item.letter for item in sorted(sides, key=lambda item: len(item.steps))] if straight else [],
    }
    try:
        before, after = store.load_checkpoint(a.id), store.load_checkpoint(b.id)
        names = before.differing(after)
        context |= difference_context(before.state, after.state, names, veil_of(a), veil_of(b))
    except NotVerified as refused:
        return context | {"refused": refused}
    return context | {"same": len(after.fields.keys() - names)}


def _drawn_side(shown: comparison.ComparedCheckpoint) -> dict[str, Any]:
    """Return one side for runs/comparison/side.html: its steps in the order in which they were saved.

    To each step belong its title, how it came to be, and how long it took.
    """
    outcomes, called = _outcomes_of(shown.steps), spec_of(shown.checkpoint.plan).title_of
    return {
        "shown": shown,
        "place": f"{shown.letter}: {shown.checkpoint.seq} of {shown.run}",
        "worked": format_duration(timedelta(microseconds=sum(step.took_us for step in shown.steps))),
        "path_steps": [
            (
                step,
                called(step.step if step.kind in NAMED else step.kind),
                outcomes.get(step.id, marks.NOTHING_ASKED) if step.kind == "gate" else KINDS.get(step.kind, marks.RAN),
                format_duration(timedelta(microseconds=step.took_us)) if step.took_us else "",
            )
            for step in shown.steps
        ],
    }


def _outcomes_of(way: Sequence[CheckpointHeader]) -> dict[UUID, TimelineMark]:
    """Map the checkpoint that saved a gate's outcome to the outcome's mark."""
    bases = {row.parent: row.id for row in way if row.kind in ("gate", "asked") and row.parent}
    found = Outcome.objects.filter(gate__checkpoint__in=list(bases), gate__kind=Gate.Kind.REVIEW)
    return {bases[base]: marks.OUTCOMES[kind] for base, kind in found.values_list("gate__checkpoint", "kind")}
