"""The store: start a run, load what it saved, save what a step wrote.

A run is a chain of immutable checkpoints; its head is the newest on the path that counts. `save` adds to the
head, `move_head` adds to an earlier checkpoint (a rewind), `fork` starts another run from one.
"""

from checkpoints.layout.snapshot import Header, Snapshot

from .executions import compare, history
from .loading import expect, fields_of, load, load_checkpoint, load_head, reading
from .save_statements import Along
from .saving import DeferredSave, defer, move_head, save
from .start_and_fork import fork, start

__all__ = [
    "Along", "DeferredSave", "Header", "Snapshot", "compare", "defer", "expect", "fields_of", "fork", "history", "load",
    "load_checkpoint", "load_head", "move_head", "reading", "save", "start",
]  # fmt: skip
