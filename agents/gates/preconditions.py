"""Looking at the world for a gate's preconditions: when the gate opens, and again before an effect that they guard.

What is seen when the gate opens is put on its card, so that people see it and their decision binds it. Before the
effect the same observation is made on the state at hand; where it gives anything else, nothing is done and the gate
asks again. An observation that fails says nothing about the world: it is a failed attempt of the step that wanted it,
and neither opens a gate nor lets an effect through.

An observation is a call to somewhere else, so it is made outside any transaction and before the effect's intent. A
window remains, from the answer of the observation until the provider acts on the effect's request: what changes in
it is not seen. Only a provider that takes the condition along with the request could close it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog
from django.db import transaction
from django.utils.crypto import salted_hmac
from pydantic import SecretBytes, SecretStr

from agents.definition.plan_builder import takes_observed
from agents.errors import NotGranted, ObservationFailed, Retry, StepFailed
from agents.session.run_session import RunSession
from agents.steps import execute
from agents.steps.invoke import call_method
from approvals.cards import precondition
from approvals.cards.binding import Approved, Row
from approvals.cards.card import Card
from approvals.english import quote_titles
from approvals.errors import CardRefused
from approvals.schema import redact
from checkpoints.errors import Fenced
from checkpoints.events import event_log
from checkpoints.runs.plans import StepSpec
from checkpoints.values.canonical_json import decode_canonical, encode_canonical
from checkpoints.values.characters import one_line

LIMIT = 64 * 1024  # bytes of one observation: it is a fact to compare and to show, not a document
TOLD = 16  # hex digits by which one secret is told from another; the key is the site's
FAILED = (ObservationFailed, StepFailed, Retry)  # what `look` raises
log = structlog.get_logger()


def first_looks(session: RunSession, spec: StepSpec) -> dict[str, Any] | None:
    """Return what all observations of the gate give, by name, where its method wants to know before it draws its card.

    None where it does not. Raises what `look` raises.
    """
    return {name: look(session, name) for name in spec.observes} if takes_observed(session.agent, spec) else None


def with_observations(session: RunSession, spec: StepSpec, card: Card, known: Mapping[str, Any]) -> Card:
    """Return the card with what each precondition observes; nothing that is `known` already is observed again.

    Raises CardRefused for one that the gate does not name, and what `look` raises.
    """
    names = list(dict.fromkeys(precondition.observes for precondition in card.preconditions))
    for name in names:
        if name not in spec.observes:
            raise CardRefused(f"{spec.name}: a precondition observes {name!r}, which the gate does not name")
    seen = {name: known[name] if name in known else look(session, name) for name in names}
    return replace(
        card,
        preconditions=[replace(precondition, value=seen[precondition.observes]) for precondition in card.preconditions],
    )


def look(session: RunSession, name: str) -> Any:
    """Make one observation on the state at hand, under its own time limit.

    Raises ObservationFailed, StepFailed where trying again is useless, and Retry where the observation asks for it.
    """
    try:
        data = encode_canonical(_hidden(session, call_method(session, name, session.snapshot.state)))
    except Fenced:
        raise
    except execute.RAISED as error:
        raise _failure(name, error) from error
    if len(data) > LIMIT:
        raise StepFailed(f"The observation {name} gave {len(data):,} bytes; at most {LIMIT:,} are compared and shown.")
    return decode_canonical(data)


def _hidden(session: RunSession, value: Any) -> Any:
    """Return what was observed, with nothing in it that may not be shown: this is what is kept, compared and shown.

    A secret that the observation itself returns becomes a mark that tells the secrets of one run apart; marks of
    two runs cannot be compared. A secret of the state becomes the mask, wherever a text holds it.
    """
    return redact.scrubbed(_marked(value, session.run.pk), session.secrets)


def _marked(value: Any, run: int) -> Any:
    if isinstance(value, (SecretStr, SecretBytes)):
        secret = value.get_secret_value()
        digest = salted_hmac(f"holdpoint observation {run}", secret, algorithm="sha256").hexdigest()
        return f"{redact.MASK} ({digest[:TOLD]})"
    if isinstance(value, dict):
        return {name: _marked(item, run) for name, item in value.items()}
    return [_marked(item, run) for item in value] if isinstance(value, (list, tuple)) else value


def check(session: RunSession, spec: StepSpec, approved: Approved) -> None:
    """Look again at what guards this effect. Raises NotGranted, Fenced, and what `look` raises."""
    fixed = approved.guarding(spec.name)
    if not fixed:
        return
    if session.attempt > spec.retry + 1:  # do not repeat what may kill the worker
        raise StepFailed(f"{session.attempt - 1} workers died in this step, or were stopped, before it came to an end.")
    now = {name: look(session, name) for name in dict.fromkeys(precondition.observes for precondition in fixed)}
    rows = precondition.drifts(fixed, now)
    if rows:
        _tell(session, spec, approved, [item.id for item in fixed if precondition.drifts([item], now)])
        raise NotGranted(f"Conditions changed since {quote_titles([spec.title])} was approved: {said_of(rows)}.")


def changed_since(session: RunSession, approved: Approved, effect: str, card: Card) -> list[Row]:
    """List how the world differs from what `effect` was approved for. `card` has what the gate observes now."""
    fixed = approved.guarding(effect)
    now = {precondition.observes: precondition.value for precondition in card.preconditions}
    unasked = dict.fromkeys(precondition.observes for precondition in fixed if precondition.observes not in now)
    return precondition.drifts(fixed, {**now, **{name: look(session, name) for name in unasked}})


def said_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say on one line, for the run's page, what each row was and what it is."""
    lines = [f"{row['pointer'][1:]} was {_short(row, 'before')}, is {_short(row, 'after')}" for row in rows]
    return one_line("; ".join(lines), 250)


def _short(row: Mapping[str, Any], side: str) -> str:
    return one_line(encode_canonical(row[side]).decode(), 80) if side in row else "not there"


def _failure(name: str, error: BaseException) -> Exception:
    """Return what to raise for an observation that raised: again later, unless it says otherwise."""
    words = f"The observation {name} failed: {execute.said(error)}"
    if isinstance(error, Retry):
        return Retry(words, after=error.after)
    return StepFailed(words) if isinstance(error, execute.USELESS_TO_REPEAT) else ObservationFailed(words)


def _tell(session: RunSession, spec: StepSpec, approved: Approved, ids: list[str]) -> None:
    """Record that the effect was withheld, whatever becomes of this worker before the gate asks again."""
    log.warning("effect.withheld", step=spec.name, gate=approved.gate, preconditions=ids)
    data = {"step": spec.name, "gate": approved.gate, "preconditions": ids}
    with transaction.atomic():
        session.hold_token()
        event_log.record("effect.withheld", subject=f"run:{session.run.pk}", run=session.run, by=session.by, data=data)
