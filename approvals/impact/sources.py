"""Where a history comes from: whoever has the agents' code and the ledger of effects registers here.

This app may not import them. Where nobody registered, nothing recorded is known, and an impact names every step as
one that has to run.
"""

from __future__ import annotations

from collections.abc import Callable

from checkpoints.models import Run
from checkpoints.plans import spec_of

from .facts import History

Source = Callable[[Run], History]
_registered: list[Source] = []


def register(source: Source) -> None:
    """Add whoever can read all that a run's lineage has recorded."""
    _registered.append(source)


def history_of(run: Run) -> History:
    """What is recorded of the run's lineage. Needs the run's plan."""
    for source in _registered:
        return source(run)
    return History(run=run.pk, plan=spec_of(run.plan), next_step=run.next_step)
