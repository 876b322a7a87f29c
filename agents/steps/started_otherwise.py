"""The recovery gate of a step that another version starts otherwise: it would start children beside those it has.

It names them, with what each did. A person has them undone, and the step tried again; or the version that started them
is served again, which calls for them: after a rewind to before the upgrade where the agent itself got another version.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from agents.models import ChildLink, Effect
from agents.session import child_runs
from agents.session.run_session import RunSession
from approvals.cards.answer import RecoveryAnswer
from approvals.engine_rules import effects
from approvals.english import count_of, quote_titles
from approvals.models import Gate
from checkpoints.models import Plan, Run
from checkpoints.runs.plans import StepSpec, spec_of
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values.checkpoint_kinds import Kind

from . import recovery_gate
from .recovery_gate import choice

NAMED = 20  # children that are named one by one


def ask(session: RunSession, spec: StepSpec, rows: Sequence[ChildLink]) -> None:
    """Ask what becomes of these children. Releases the run to waiting. Raises Fenced.

    Those that can be undone come first. The others stay as they are: a person may only let others start beside them.
    """
    undoable = child_runs.undoable(rows, session.run.pk)
    rows = undoable or rows
    count, before = len(rows), _before_upgrade(session, rows)
    step = recovery_gate.named(spec)
    these = "this run" if count == 1 else f"these {count:,} runs"
    undo = f"Withdraw and undo {these}, then start anew"
    again = [] if before else [choice(RecoveryAnswer.RETRY, f"Try {step} again; these runs stay as they are")]
    beside = "Start anew beside this run, which stays" if count == 1 else "Start anew beside these runs, which stay"
    first = choice(RecoveryAnswer.WITHDRAW, undo) if undoable else choice(RecoveryAnswer.DO_AGAIN, beside)
    choices = [first, *again, choice(RecoveryAnswer.STOP, "Stop the run")]
    since = "an earlier version"
    keep = f"To keep them, serve the earlier version again, then let {step} try again here."
    if before:
        since = f"version {Plan.objects.get(pk=before.plan_id).version}"
        keep = (
            f"To keep them, serve {since} again, then rewind this run to checkpoint {before.seq}, before the upgrade."
        )
    there = "Its earlier run is" if count == 1 else f"Its {count:,} earlier runs are"
    text = (
        f"{step} now starts its runs with other values than {since} did. {there} still there, and both could do the "
        f"same. So nothing new has started. {keep}"
    )
    recovery_gate.ask(
        session, spec, f"{step} would start its runs a second time:", text, choices,
        reasons=_lines(rows), runs=[row.run_id for row in rows], permits=False,
    )  # fmt: skip


def _before_upgrade(session: RunSession, rows: Sequence[ChildLink]) -> CheckpointHeader | None:
    """Return the last checkpoint before the run got the version that starts them otherwise; None where it has not."""
    path = session.path
    own = next(number for number, place in enumerate(path.places) if place.run_id == session.run.pk)
    starts = [
        path.numbers.get(row.head, own) for row in rows if row.head in path.ids or row.parent_id != session.run.pk
    ]
    places = pairwise(path.places[min(starts) :]) if starts else ()
    return next((before for before, place in places if place.kind == Kind.UPCAST), None)


def _lines(rows: Sequence[ChildLink]) -> list[str]:
    """Say of each child where it is, and what it and the runs that it started did."""
    asking: dict[int, list[str]] = {}
    for run, title in Gate.objects.open().filter(run__in=[row.run_id for row in rows]).values_list("run_id", "title"):
        asking.setdefault(run, []).append(title)
    done = child_runs.done_by([row.run_id for row in rows[:NAMED]])
    lines = [
        f"R-{row.run_id} “{row.run.title}” {_standing(row.run, asking.get(row.run_id, []))}. {_did(done[row.run_id])}"
        for row in rows[:NAMED]
    ]
    more = len(rows) - NAMED
    return lines + [f"and {count_of(more, 'more run')}"] * (more > 0)


def _standing(run: Run, asking: Sequence[str]) -> str:
    if asking:
        return f"waits for the decision at {quote_titles(asking)}"
    return {
        Run.Status.COMPLETED: "has completed",
        Run.Status.FAILED: "has failed",
        Run.Status.CANCELLED: "was cancelled",
        Run.Status.WAITING: "waits",
    }.get(Run.Status(run.status), "is at work")


def _did(rows: Sequence[Effect]) -> str:
    """Say which effects were done, or may have been, and which of them cannot be undone."""
    known = [row for row in rows if row.status not in effects.IN_DOUBT]
    doubtful = [row for row in rows if row not in known]
    final = [row for row in rows if row.irreversible]
    sentences = [
        f"It did {_quoted(known)}" if known else "",
        f"It may have done {_quoted(doubtful)}" if doubtful else "",
        f"{_quoted(final)} cannot be undone" if final else "",
    ]
    return ". ".join(filter(None, sentences)) or "Nothing to undo"


def _quoted(rows: Sequence[Effect]) -> str:
    return quote_titles(spec_of(row.run.plan).title_of(row.step) for row in rows)
