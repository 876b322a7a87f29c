from checkpoints.events.event import Event, EventText

from .checkpoint import Checkpoint, Chunk, Note
from .gap import Gap
from .hold import Hold, TechnicalHold
from .plan import Plan
from .retention import Prune, PruneLine, RetentionPolicy
from .run import Run
from .seal import Seal
from .verification import Verification

__all__ = [
    "Checkpoint", "Chunk", "Event", "EventText", "Gap", "Hold", "Note", "Plan", "Prune", "PruneLine", "RetentionPolicy",
    "Run", "Seal", "TechnicalHold", "Verification",
]  # fmt: skip
