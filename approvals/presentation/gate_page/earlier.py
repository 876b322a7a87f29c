"""Says what was before a gate: what other runs did that is like it, who rejected the same, who wrote into its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from num2words import num2words  # type: ignore[import-untyped]

from approvals.consequences.done_before import DoneBefore
from approvals.consequences.verbs import DO, phrase
from approvals.english import count_of, join_names
from approvals.gates import reveal_secret
from approvals.models import Gate, Outcome
from approvals.policy import separation
from approvals.policy.separation import Contribution
from approvals.presentation.decision_form import send_button
from approvals.presentation.drawing.times import moment
from approvals.presentation.gate_facts.provenance import Provenance, in_quotes
from approvals.presentation.text import exact_call
from approvals.presentation.text.exact_call import AT_GATE
from checkpoints import actors, store
from checkpoints.access.permissions import PersonKind, kind_of
from checkpoints.errors import NoSuchCheckpoint, NotVerified
from checkpoints.models import Plan
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.values import patch

IN_WORDS = 10  # highest attempt whose number is written as a word
LOOKED_AT = 50  # closed gates about a resource, the newest first
MOST = 5  # changes of one edit that are named
LENGTH = 60  # characters of a value


def say_done(each: DoneBefore, resource: str, *, outside: bool) -> str:
    """Say what was done, when and by which run. Titles and `resource` are an agent's own: data, never markup.

    `outside`: an external program named the resource.
    """
    action = each.action
    theirs = each.external and (action is None or action.registered is None)
    titles = [each.effect, *([action.title] if action and action.title else [])]
    verb, what = (DO, in_quotes(each.effect, outside=True)) if theirs else phrase(titles)
    if verb is DO:
        words = f"{what} was done" if each.done else f"{what} may have been done"
    else:
        amounts = send_button.amounts_of([action]) if action else []
        past = " ".join([verb.past, *(amounts or [what])])
        words = f"{past[:1].upper()}{past[1:]}" if each.done else f"May have {past}"
    about = f"for {in_quotes(resource, outside=outside)}" if resource and not each.same else ""
    where = f"by R-{each.run} (gate {each.gate})" if each.gate else "by another run"
    return " ".join(filter(None, [words, about, moment(each.at), where]))


@dataclass(frozen=True, kw_only=True)
class GateAttempt:
    """An earlier rejection: of the same, of what this run asked here before, or of another request for its resource."""

    how: str  # same, run or resource
    gate: Gate | None  # the last rejected gate, with its outcome; None where the reader may not see it
    heard: bool  # whether the reader sees the team's runs, and so the words of decisions
    times: str = ""  # how often, in words
    title: str = ""  # of what the run asks again: its number

    @property
    def by(self) -> str:
        return self.gate.outcome.by_name or self.gate.outcome.by if self.gate else ""

    @property
    def reason(self) -> str:
        """Return the words of the last rejection; "" where the reader may not see them."""
        return self.gate.outcome.words if self.gate and self.heard else ""

    @property
    def amount(self) -> str:
        return Provenance.of(self.gate).amount(self.gate.asked, masked=AT_GATE) if self.gate else ""


def rejection(gate: Gate, *, reader: User, heard: bool) -> GateAttempt | None:
    """Return the earlier rejection that the reader of a gate is told of; None where there is none."""
    rejected = gate.attempt - 1
    if not rejected:
        asks = gate.resource and gate.status == Gate.Status.OPEN
        found = _rejected_about(gate.team_id, gate.resource, reader.pk, kind=kind_of(reader)) if asks else []
        return GateAttempt(how="resource", gate=found[0], heard=heard) if found else None
    last = next(iter(_seen(gate.rejected_before_id or 0, reader.pk, kind=kind_of(reader))), None)
    same = last is None or not set(last.likeness).isdisjoint(gate.likeness)
    number = num2words(gate.attempt, to="ordinal" if gate.attempt <= IN_WORDS else "ordinal_num", lang="en")
    often = count_of(rejected, "time")
    return GateAttempt(
        how="same" if same else "run", gate=last, heard=heard, times={1: "once", 2: "twice"}.get(rejected, often),
        title=f"{number.capitalize()} attempt",
    )  # fmt: skip


@prepared_statement
def _seen(pk: Any, user: Any, *, kind: PersonKind) -> QuerySet[Gate]:
    seen = Gate.objects.visible_to(kind.person(user)).filter(pk=pk)
    return seen.select_related("outcome", "run__plan")


@prepared_statement
def _rejected_about(team: Any, resource: Any, user: Any, *, kind: PersonKind) -> QuerySet[Gate]:
    """Read the last rejected one of the latest closed gates about a resource."""
    about = Gate.objects.filter(team=team, resource=resource).exclude(status=Gate.Status.OPEN)
    latest = about.order_by("-pk").values("pk")[:LOOKED_AT]
    seen = Gate.objects.visible_to(kind.person(user)).filter(pk__in=latest, outcome__kind=Outcome.Kind.REJECTED)
    return seen.select_related("outcome", "run__plan").order_by("-pk")[:1]


def changes(gate: Gate) -> list[str]:
    """List sentences: who changed, sent or answered what before the gate was asked, oldest first.

    Their values are data, never markup. No statement where nobody did.
    """
    wrote = separation.authors_of(gate)
    if not wrote:
        return []
    try:
        found = separation.contributions(gate.run, gate.checkpoint, gate.step, before=gate.opened_at)
    except NoSuchCheckpoint:  # the gate is closed, and retention removed its state, and so what led there
        people = actors.names(f"user:{each}" for each in wrote)
        return [f"{people[f'user:{each}']} changed the run before" for each in wrote]
    names = actors.names(f"user:{each.person}" for each in found)
    said = [_sentence(each, names[f"user:{each.person}"], own=gate.run_id) for each in found]
    return list(filter(None, said))


def _sentence(what: Contribution, person: str, *, own: int) -> str:
    run = f"R-{what.run}"
    if what.what == separation.STARTED:
        return f"{person} started {run}, from which this comes"
    if what.what == separation.SIGNALLED:
        return f"{person} sent the signal “{what.name}”"
    if what.what == separation.ANSWERED:
        return f"{person} answered or edited gate {what.gate}"
    if what.what == separation.WORKED:
        return f"A program of {person} worked on {run}"
    changed = _changed(what) if what.saved else []
    if what.what == separation.FORKED:
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
    veil = reveal_secret.of_plan(what.run, Plan.objects.get(pk=saved.plan_id))
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
