"""Asks the provider whether an effect happened whose answer never arrived."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

import structlog
from django.db import transaction
from django.db.models import DateTimeField, ExpressionWrapper, F
from django.db.models.functions import Now

from agents.definition import outputs
from agents.errors import OutputRefused
from agents.models import Effect
from agents.session import translate_history
from agents.session.run_session import RunSession
from agents.steps import execute
from agents.steps.invoke import call_about
from checkpoints.errors import Fenced, ValueRefused
from checkpoints.runs.plans import StepSpec

log = structlog.get_logger()


class ReadBack(Enum):
    """The provider's answer about an effect."""

    HAPPENED = "happened"
    NOT_HAPPENED = "not happened"
    NOT_SAID = "not said"  # it could not be asked, or its no cannot be trusted yet


def read_back(session: RunSession, spec: StepSpec, row: Effect) -> ReadBack:
    """Ask by the effect's key; record an effect that happened as done, with its result. Raises Fenced.

    A no is believed at once if the effect is idempotent; else only after the effect's own timeout, since the provider
    does not know a request yet that is still under way.
    """
    if not spec.readable:
        return ReadBack.NOT_SAID
    try:
        state = translate_history.started_from(row, session.run.plan)
        said = call_about(session, spec.readable, spec.name, state, key=row.key)
        if said is None:
            return ReadBack.NOT_HAPPENED if spec.idempotent or _over(row, spec) else ReadBack.NOT_SAID
        output = outputs.checked(session.agent, session.plan, spec, said)
    except Fenced:
        raise
    except (*execute.RAISED, ValueRefused, OutputRefused) as error:
        log.warning("effect.not_read_back", step=spec.name, key=row.key, error=session.clean(execute.said(error)))
        return ReadBack.NOT_SAID
    with transaction.atomic():
        row.done(translate_history.packed(session.snapshot, row, output), by=session.by)
        session.hold_token()
    log.info("effect.read_back", step=spec.name, key=row.key)
    return ReadBack.HAPPENED


def _over(row: Effect, spec: StepSpec) -> bool:
    """Tell whether the effect's timeout has passed since its intent, by the database's clock."""
    ended = ExpressionWrapper(F("intended_at") + timedelta(seconds=spec.timeout or 0.0), DateTimeField())
    return Effect.objects.filter(pk=row.pk).alias(ended=ended).filter(ended__lt=Now()).exists()
