"""An agent's own figures and result on its run's page, read from the state at the head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from agents.definition import fields, registry
from agents.definition.agent import Agent
from agents.presentation.page_head import HeadCell
from approvals.schema import redact
from checkpoints import store
from checkpoints.errors import CheckpointError
from checkpoints.models import Run

MOST = 8  # figures
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Told:
    """Figures as the head draws them, and the agent's result."""

    cells: Sequence[HeadCell] = ()
    result: str = ""


NOTHING = Told()


def read_figures(run: Run) -> Told:
    """Return the agent's figures and result; nothing if it has none, or its version is not deployed here.

    The agent's code is its author's, and may read the state of an older version: if it fails, the page is
    drawn without it.
    """
    agent = _agent_of(run)
    ended = run.status not in Run.LIVE
    metered, ends = _tells(agent, "meters"), ended and _tells(agent, "result")
    if agent is None or run.head is None or not (metered or ends):
        return NOTHING
    try:
        saved = store.load_checkpoint(run.head).state
        state = agent.State.model_validate(saved, by_name=True, by_alias=False)
        veil = fields.veil(agent.State)
        secrets = veil.words(saved) if veil else []

        def clean(text: object) -> str:
            return str(redact.scrubbed(str(text), secrets))

        cells = [HeadCell(*map(clean, meter[:3])) for meter in agent.meters(state)][:MOST] if metered else []
        return Told(cells, clean(agent.result(state)) if ends else "")
    except CheckpointError:
        return NOTHING  # another part of the page reports it
    except Exception:
        log.exception("run.not_told", run=run.pk)
        return NOTHING


def _agent_of(run: Run) -> type[Agent] | None:
    known = registry.agents().get((run.plan.agent, run.plan.version))
    return known.agent if known else None


def _tells(agent: type[Agent] | None, name: str) -> bool:
    """Tell whether the agent overrides this method: otherwise the state is not read for it."""
    return agent is not None and getattr(agent, name).__func__ is not getattr(Agent, name).__func__
