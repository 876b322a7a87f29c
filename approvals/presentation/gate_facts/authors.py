"""Says who wrote what into a gate's state before it was asked, with the values that they changed."""

from __future__ import annotations

from collections.abc import Sequence

from approvals.english import join_names
from approvals.gates import state_secrets
from approvals.models import Gate
from approvals.policy import authorship
from approvals.policy.authorship import Contribution
from approvals.presentation.text import exact_call
from checkpoints import actors, store
from checkpoints.errors import NoSuchCheckpoint, NotVerified
from checkpoints.models import Plan
from checkpoints.values import patch

MOST = 5  # changes of one edit that are named
LENGTH = 60  # characters of a value


def changes(gate: Gate) -> list[str]:
    """List sentences: who changed, sent or answered what before the gate was asked, oldest first.

    Their values are data, never markup. No statement where nobody did.
    """
    wrote = authorship.authors_of(gate)
    if not wrote:
        return []
    try:
        found = authorship.contributions(gate.run, gate.checkpoint, gate.step, before=gate.opened_at)
    except NoSuchCheckpoint:  # the gate is closed, and retention removed its state, and so what led there
        people = actors.names(f"user:{each}" for each in wrote)
        return [f"{people[f'user:{each}']} changed the run before" for each in wrote]
    names = actors.names(f"user:{each.person}" for each in found)
    said = [_sentence(each, names[f"user:{each.person}"], own=gate.run_id) for each in found]
    return list(filter(None, said))


def _sentence(what: Contribution, person: str, *, own: int) -> str:
    run = f"R-{what.run}"
    if what.what == authorship.STARTED:
        return f"{person} started {run}, from which this comes"
    if what.what == authorship.SIGNALLED:
        return f"{person} sent the signal “{what.name}”"
    if what.what == authorship.ANSWERED:
        return f"{person} answered or edited gate {what.gate}"
    if what.what == authorship.WORKED:
        return f"A program of {person} worked on {run}"
    changed = _changed(what) if what.saved else []
    if what.what == authorship.FORKED:
        if not changed:
            return "" if what.run == own else f"{person} forked {run}, from which this comes"
        return f"{person} changed {join_names(changed)} at checkpoint {what.at} for the fork {run}"
    where = f"checkpoint {what.at}" if what.run == own else f"checkpoint {what.at} of {run}"
    return f"{person} changed {join_names(changed) or 'the state'} at {where}"


def _changed(what: Contribution) -> Sequence[str]:
    """Name the changed values; none where retention has removed the state of before, or it does not verify."""
    saved = what.saved
    if saved is None or saved.parent is None:
        return []
    try:
        before, after = store.load_checkpoint(saved.parent).state, store.load_checkpoint(saved.id).state
    except (NotVerified, NoSuchCheckpoint):
        return []
    # In words that stand on pages for long, whoever wrote a mark of a secret.
    veil = state_secrets.of_plan(what.run, Plan.objects.get(pk=saved.plan_id))
    rows = veil.rows(patch.list_changes(before, after))
    named = [_row(each) for each in rows[:MOST]]
    return [*named, f"{len(rows) - MOST} more"] if len(rows) > MOST else named


def _row(row: dict[str, object]) -> str:
    place = exact_call.dotted(str(row["pointer"]))
    before, after = (_value(row[side]) if side in row else "" for side in ("before", "after"))
    if before and after:
        return f"{place} from {before} to {after}"
    return f"{place} to {after}" if after else f"{place}, which was {before} and is gone"


def _value(value: object) -> str:
    """Write a value; words in quotes, so that nobody takes them for the sentence around them."""
    text = exact_call.short(value, LENGTH)
    return f"“{text}”" if not text or any(map(str.isspace, text)) else text
