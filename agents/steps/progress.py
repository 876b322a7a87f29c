"""`self.progress`: shows a running step's text on the run's page, without a checkpoint.

A text is written at most every `PAUSE` seconds, each in the place of the one before, and the open pages are told to
fetch it. A text that cannot be written is skipped, and the step goes on; only what the step returns is kept.
"""

from __future__ import annotations

import time

import structlog
from django.db import Error

from agents.models import Spoken
from agents.session.run_session import RunSession
from approvals.live import ephemeral
from approvals.schema import redact
from checkpoints.postgresql.sql import make_storable
from checkpoints.runs.plans import StepSpec

from .alarms import unalarmed

PAUSE = 0.15  # seconds between two texts
LONGEST = 20_000  # characters; of a longer text its end is shown
log = structlog.get_logger()


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
            ephemeral.whisper(ephemeral.SPOKEN, run.pk)

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
