"""LangGraph on Holdpoint: a graph's threads as runs that people can see, approve, edit and rewind."""

from .backend import HttpBackend
from .checkpointer import HoldpointSaver
from .importing import import_thread
from .running import arun, run
from .saver_errors import (
    SaverError,
    Tampered,
    ThreadEnded,
    ThreadHeld,
    ThreadMoved,
    ThreadTaken,
    Unreadable,
    Unsaveable,
)

__all__ = [
    "HoldpointSaver", "HttpBackend", "SaverError", "Tampered", "ThreadEnded", "ThreadHeld", "ThreadMoved",
    "ThreadTaken", "Unreadable", "Unsaveable", "arun", "import_thread", "run",
]  # fmt: skip
