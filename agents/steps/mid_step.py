"""`self.checkpoint` and `self.checkpointed`: values inside a long step, from which it goes on after a crash.

A value belongs to the checkpoint from which the step was sent on, like a result of `once`: a crash, a retry and "try
again" find it, a rewind does not. It is no part of the state: only what the step returns is.

Also here: `self.progress`: shows a running step's text on the run's page, without a checkpoint.

A text is written at most every `PAUSE` seconds, each in the place of the one before, and the open pages are told to
fetch it. A text that cannot be written is skipped, and the step goes on; only what the step returns is kept.
"""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

import structlog
from django.db import Error

from agents.errors import AgentError
from agents.models import Spoken, StepCheckpoint
from agents.session.run_session import RunSession
from approvals.live import channel_layer
from approvals.schema import redact
from checkpoints import crash_points
from checkpoints.errors import Fenced, ValueRefused
from checkpoints.postgresql.sql import make_storable
from checkpoints.runs.plans import StepSpec
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.characters import one_line

from .alarms import unalarmed

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


PAUSE = 0.15  # seconds between two texts
LONGEST = 20_000  # characters; of a longer text its end is shown


class LiveText:
    """The live text of one execution of one step."""

    def __init__(self, session: RunSession, spec: StepSpec) -> None:
        self.session = session
        self.spec = spec
        self.spoken = ""
        self._next = 0.0

    def say(self, text: str) -> None:
        """Show this text in the place of the one before. A text that comes too soon after it is skipped."""
        now = time.monotonic()
        if now < self._next or text == self.spoken:
            return
        self._next, self.spoken = now + PAUSE, text
        run, claim = self.session.run, self.session.claim
        said = make_storable(self._hiding(text))[-LONGEST:]
        try:
            with unalarmed():
                told = Spoken.objects.say(
                    run.pk, token=claim.token, base=self.session.snapshot.id, step=self.spec.name,
                    attempt=self.session.attempt, text=said,
                )  # fmt: skip
        except Error as error:
            log.info("step.not_heard", error=str(error))
            return
        if told:
            channel_layer.whisper(channel_layer.SPOKEN, run.pk)

    def _hiding(self, text: str) -> str:
        """Return the whole text, before it is cut, without the state's secrets or the beginning of one at its end."""
        shown = self.session.clean(text)
        return shown[: len(shown) - redact.begun(shown, self.session.secrets)]

    def hush(self) -> None:
        """Delete the text when the step has ended."""
        if not self.spoken:
            return
        try:
            with unalarmed():
                Spoken.objects.forget(self.session.run.pk, token=self.session.claim.token)
        except Error as error:
            log.info("step.not_hushed", error=str(error))
