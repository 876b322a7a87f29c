"""The store's errors. Each docstring is the message that a person reads, and says what to do."""

from __future__ import annotations

from typing import Any

from django.utils.dateformat import format as date_format


class CheckpointError(Exception):
    """The checkpoint store refused the operation."""

    def __str__(self) -> str:
        return super().__str__() or (self.__doc__ or "")


class ValueRefused(CheckpointError):
    """The value cannot be saved as it is; change what the pointer names."""

    def __init__(self, pointer: str, reason: str) -> None:
        super().__init__(f"{pointer or '/'}: {reason}")
        self.pointer = pointer
        self.reason = reason


class StateTooLarge(ValueRefused):
    """The state is over its size limit; keep large binaries as artifacts and trim long lists."""


class Fenced(CheckpointError):
    """Another worker holds this run now; drop the current work, its result cannot be saved."""


class NotVerified(CheckpointError):
    """The stored data does not match its digest; the run is frozen until a person has checked it."""

    def __init__(self, subject: str, reason: str) -> None:
        super().__init__(f"{subject}: {reason}")
        self.subject = subject
        self.reason = reason


class NoSuchCheckpoint(CheckpointError):
    """There is no such checkpoint in this run's lineage; look the id up in the run's history."""


class NotRecorded(NoSuchCheckpoint):
    """This checkpoint was not written by a step, so it has no recorded writes to replay."""


class NoSuchArtifact(CheckpointError):
    """The artifact is not in the file storage; restore it from the backup."""

    def __init__(self, digest: str) -> None:
        super().__init__(f"Artifact {digest[:8]} is not in the file storage; restore it from the backup.")
        self.digest = digest


class NoTeam(CheckpointError):
    """This thread works for no team; start it with contextvars.copy_context().run, so that the file has an owner."""


class OtherLineage(CheckpointError):
    """The two checkpoints have no common ancestor; compare checkpoints of one run, or of a run and its forks."""


class PlanChanged(CheckpointError):
    """The agent's code changed under a version that runs still wait on; raise the agent's version."""


class UnfitDatabase(CheckpointError):
    """This PostgreSQL, or the connection to it, does not meet the requirements."""


class RestoredDatabase(UnfitDatabase):
    """This database was set back, by a backup or a failover: run `python manage.py restored` before you go on."""


class NotThatDatabase(CheckpointError):
    """DATABASE_OWNER_URL and DATABASE_URL lead to two databases: name the restored one in both."""


class ImplausibleEvent(CheckpointError):
    """An event has a number that no server can have given it: look at it as the owner, and remove it."""

    def __init__(self, xid: int) -> None:
        super().__init__(
            f"An event has the transaction {xid}, which no server can have given it. Look at it as the owner of "
            "checkpoints_event, remove it, and run this again."
        )


class CheckpointRemoved(CheckpointError):
    """The checkpoint was removed by retention; its state cannot be restored."""

    def __init__(self, gap: Any, seq: int) -> None:
        """Name the policy that removed checkpoint `seq`: `gap` is the checkpoints.models.Gap in its place."""
        super().__init__(
            f"Checkpoint {seq} of R-{gap.run_id} was removed on {date_format(gap.at, 'd F Y')} under the retention "
            f"policy {gap.policy} (version {gap.policy_version}); its state cannot be restored."
        )
        self.gap = gap
        self.seq = seq
