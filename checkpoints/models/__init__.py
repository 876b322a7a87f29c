from checkpoints.events.event import Event, EventText

from .checkpoint import Checkpoint, Chunk, Gap, Note
from .retention import Hold, Prune, PruneLine, RetentionPolicy, TechnicalHold
from .run import Plan, Run
from .seal import Seal, Verification

__all__ = [
    "Checkpoint", "Chunk", "Event", "EventText", "Gap", "Hold", "Note", "Plan", "Prune", "PruneLine", "RetentionPolicy",
    "Run", "Seal", "TechnicalHold", "Verification",
]  # fmt: skip
