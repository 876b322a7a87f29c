"""Retention's errors. Each docstring is the message that a person reads."""

from __future__ import annotations

from checkpoints.errors import CheckpointError


class PruneRefused(CheckpointError):
    """Nothing was removed."""


class PruneChanged(PruneRefused):
    """This dry run was applied or dropped meanwhile, or is not complete yet; nothing was removed. Look again."""


class PoliciesChanged(PruneRefused):
    """A retention policy was changed since this dry run; nothing was removed. Look again."""


class AlreadyPruning(PruneRefused):
    """Another prune is being applied; nothing was removed. Wait until it is done, then look again."""


class NotUnderWay(PruneRefused):
    """This prune is not under way any more; there is nothing to stop."""


class Stopped(CheckpointError):
    """The prune was stopped; what it had removed stays removed."""
