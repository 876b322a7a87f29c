"""Puts off the checkpoints of plain steps, where an agent asks for it, and writes them together with the next one.

Each step still makes a checkpoint of its own, drafted at once and written later: digests, occurrences, reuse and the
path are what they would be. Nobody else sees a draft, so after a crash its step runs again, and everything that other
rows refer to (effects, gates, what a step keeps, waits, failures) is preceded by a flush. A run that a worker dropped
or died in puts nothing off until it is past that: each step counts its own attempts then.
"""

from __future__ import annotations

import time

from django.db import transaction

from agents.definition.agent import EFFECTS, STEPS, Agent
from checkpoints import crash_points
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.store import DeferredSave

MOST = 100  # checkpoints that are put off
SECONDS = 30.0  # for which the first of them is


class DeferredSaves:
    """The checkpoints that a session has drafted and not written yet, oldest first."""

    def __init__(self) -> None:
        self.drafts: list[DeferredSave] = []
        self._since = 0.0

    def takes(self, agent: type[Agent], plan: PlanSpec, spec: StepSpec, next_step: str) -> bool:
        """Tell whether the checkpoint of this step may be put off."""
        if agent.checkpoints == STEPS or spec.kind != "step" or spec.validators or not next_step:
            return False
        if (spec.milestone and agent.checkpoints != EFFECTS) or plan.step(next_step).kind != "step":
            return False
        return not self.drafts or (len(self.drafts) < MOST and time.monotonic() - self._since < SECONDS)

    def put_off(self, draft: DeferredSave) -> None:
        """Keep a draft until the next flush."""
        self._since = self._since if self.drafts else time.monotonic()
        self.drafts.append(draft)

    def flush(self) -> bool:
        """Write the drafts in one transaction; False if there are none. Raises Fenced, and then none is written."""
        if not self.drafts:
            return False
        last = self.drafts[-1].step
        crash_points.point("before_flush", last)
        with transaction.atomic():
            for draft in self.drafts:
                draft.write()
        self.drafts = []
        crash_points.point("after_flush", last)
        return True
