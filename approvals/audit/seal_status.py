"""The status of the seals and their verifications, for the sheet at the top of the audit's page."""

from __future__ import annotations

from dataclasses import dataclass

from checkpoints.audit import sealer
from checkpoints.audit.sealer import UnsealedTail
from checkpoints.models import Seal, Verification
from checkpoints.postgresql.capped_count import Capped

SHOWN = 5  # findings on the page


@dataclass(frozen=True)
class SealStatus:
    """The newest seal, what it does not cover yet, the verification under way and the last one that ended."""

    seal: Seal | None
    tail: UnsealedTail
    underway: Verification | None
    last: Verification | None

    @property
    def waiting(self) -> Capped:
        """Count the settled events that no seal covers yet."""
        return Capped(min(self.tail.count, sealer.COUNTED - 1), self.tail.count >= sealer.COUNTED)

    @property
    def findings(self) -> list[str]:
        """List the first findings of the last verification."""
        return [str(problem) for problem in self.last.problems()[:SHOWN]] if self.last else []

    @property
    def unshown(self) -> int:
        """Count the findings that are not shown."""
        return max(self.last.faults - SHOWN, 0) if self.last else 0


def standing() -> SealStatus:
    """Read the seals' status as it is now."""
    ended = Verification.objects.exclude(status=Verification.Status.UNDERWAY)
    return SealStatus(
        Seal.objects.order_by("-pk").defer("marks", "heads").first(),
        sealer.tail(),
        Verification.objects.underway().first(),
        ended.order_by("-pk").first(),
    )
