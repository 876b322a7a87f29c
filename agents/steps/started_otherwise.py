"""The recovery gate of a step that another version starts otherwise: it would start children beside those it has.

It names them, with what each did. A person has them undone, and the step tried again; or the version that started them
is served again, which calls for them: after a rewind to before the upgrade where the agent itself got another version.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.models import ChildLink, Effect
from agents.session import child_runs
from agents.session.run_session import RunSession
from agents.text import saved_language
from approvals.cards.recovery_answers import RecoveryAnswer
from approvals.engine_rules import effects
from approvals.english import quoted
from approvals.models import Gate
from checkpoints.models import Plan, Run
from checkpoints.runs.plans import StepSpec, spec_of
from checkpoints.store.header import CheckpointHeader
from checkpoints.values.checkpoint_kinds import Kind

from . import recovery_gate
from .recovery_gate import choice

NAMED = 20  # children that are named one by one


@saved_language()
def ask(session: RunSession, spec: StepSpec, rows: Sequence[ChildLink]) -> None:
    """Ask what becomes of these children. Releases the run to waiting. Raises Fenced.

    Those that can be undone come first. The others stay as they are: a person may only let others start beside them.
    """
    undoable = child_runs.undoable(rows, session.run.pk)
    rows = undoable or rows
    count, before = len(rows), _before_upgrade(session, rows)
    undo = ngettext(
        "Withdraw and undo this run, then start anew", "Withdraw and undo these %(count)s runs, then start anew", count
    )
    again = [] if before else [choice(RecoveryAnswer.RETRY, _("Try %(step)s again; these runs stay as they are"))]
    beside = ngettext("Start anew beside this run, which stays", "Start anew beside these runs, which stay", count)
    first = choice(RecoveryAnswer.WITHDRAW, undo) if undoable else choice(RecoveryAnswer.DO_AGAIN, beside)
    choices = [first, *again, choice(RecoveryAnswer.STOP, _("Stop the run"))]
    text = ngettext(
        "%(step)s now starts its runs with other values than %(since)s did. Its earlier run is still there, and both "
        "could do the same. So nothing new has started.",
        "%(step)s now starts its runs with other values than %(since)s did. Its %(count)s earlier runs are still "
        "there, and both could do the same. So nothing new has started.",
        count,
    )
    keep = _("To keep them, serve the earlier version again, then let %(step)s try again here.")
    since = _("an earlier version")
    if before:
        keep = _("To keep them, serve %(since)s again, then rewind this run to checkpoint %(seq)s, before the upgrade.")
        since = _("version %(version)s") % {"version": Plan.objects.get(pk=before.plan_id).version}
    recovery_gate.ask(
        session, spec, _("%(step)s would start its runs a second time:"), f"{text} {keep}", choices,
        reasons=[line.replace("%", "%%") for line in _lines(rows)], runs=[row.run_id for row in rows], permits=False,
        count=f"{count:,}", since=since, seq=str(before.seq) if before else "",
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
    return lines + [ngettext("and %(count)s more run", "and %(count)s more runs", more) % {"count": f"{more:,}"}] * (
        more > 0
    )


def _standing(run: Run, asking: Sequence[str]) -> str:
    if asking:
        return _("waits for the decision at %(gates)s") % {"gates": quoted(asking)}
    return {
        Run.Status.COMPLETED: _("has completed"),
        Run.Status.FAILED: _("has failed"),
        Run.Status.CANCELLED: _("was cancelled"),
        Run.Status.WAITING: _("waits"),
    }.get(Run.Status(run.status), _("is at work"))


def _did(rows: Sequence[Effect]) -> str:
    """Say which effects were done, or may have been, and which of them cannot be undone."""
    known = [row for row in rows if row.status not in effects.IN_DOUBT]
    words = [
        (_("It did %(effects)s"), known),
        (_("It may have done %(effects)s"), [row for row in rows if row not in known]),
        (_("%(effects)s cannot be undone"), [row for row in rows if row.irreversible]),
    ]
    said = [word % {"effects": quoted(map(_titled, found))} for word, found in words if found]
    return ". ".join(said) or _("Nothing to undo")


def _titled(row: Effect) -> str:
    return spec_of(row.run.plan).title_of(row.step)
