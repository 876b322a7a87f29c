"""The problems that verifications report."""

from __future__ import annotations

from typing import NamedTuple


class IntegrityProblem(NamedTuple):
    """Stored data that is not what was written. `subject` names it: "checkpoint <id>", "seal 7" or "event 12"."""

    subject: str
    reason: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"
