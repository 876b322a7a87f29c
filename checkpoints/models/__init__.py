from .checkpoint import Checkpoint, Chunk, Note
from .event import Event, EventText
from .hold import Hold
from .plan import Plan
from .run import Run
from .seal import Seal

__all__ = ["Checkpoint", "Chunk", "Event", "EventText", "Hold", "Note", "Plan", "Run", "Seal"]
