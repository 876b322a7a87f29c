"""`self.checkpoint` and `self.checkpointed`: values inside a long step, from which it goes on after a crash.

A value belongs to the checkpoint from which the step was sent on, like a result of `once`: a crash, a retry and "try
again" find it, a rewind does not. It is no part of the state: only what the step returns is.
"""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

import structlog

from agents.errors import AgentError
from agents.models import StepCheckpoint
from agents.session.run_session import RunSession
from checkpoints import crash_points
from checkpoints.errors import Fenced, ValueRefused
from checkpoints.runs.plans import StepSpec
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.characters import one_line

LARGEST = 10_000_000  # bytes of one value
log = structlog.get_logger()


class MidStepCheckpoints:
    """The values that one execution of a step keeps."""

    def __init__(self, session: RunSession, spec: StepSpec) -> None:
        self.session = session
        self.spec = spec
        self._calls = 0
        self._kept_at = time.monotonic()

    def due(self, every: int | None, seconds: float | None) -> bool:
        """Count a call without a name, and tell whether its value is to be kept."""
        self._calls += 1
        late = seconds is not None and time.monotonic() - self._kept_at >= seconds
        return late or (self._calls >= every if every is not None else seconds is None)

    def keep(self, base: UUID, value: Any, name: str) -> None:
        """Keep a value. Raises Fenced where the run is another worker's by now, and AgentError."""
        if not isinstance(name, str) or name != one_line(name, 100):
            raise AgentError(f"checkpoint() takes a name of at most 100 printable characters; it got {name!r}.")
        try:
            content = encode_canonical(value)
        except ValueRefused as error:
            where = f"at {error.pointer} " if error.pointer else ""
            raise AgentError(f"checkpoint(): the value {where}{error.reason}, so it cannot be kept.") from error
        if len(content) > LARGEST:
            raise AgentError(f"checkpoint(): the value has {len(content):,} bytes; {LARGEST:,} are the most.")
        crash_points.point("before_mid_step", self.spec.name)
        run, claim = self.session.run, self.session.claim
        kept = StepCheckpoint.objects.keep(
            run.pk, token=claim.token, base=base, step=self.spec.name, name=name, value=content
        )
        if not kept:
            raise Fenced
        crash_points.point("after_mid_step", self.spec.name)
        self._calls, self._kept_at = 0, time.monotonic()

    def newest(self, base: UUID, default: Any) -> Any:
        """Return the newest value, or `default`. Raises NotVerified."""
        found = StepCheckpoint.objects.newest(self.session.run.pk, base, self.spec.name)
        if found is None:
            return default
        log.info("step.goes_on", step=self.spec.name, kept_at=str(found.at))
        return found.content
