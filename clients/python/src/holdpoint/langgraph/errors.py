"""The exceptions of the LangGraph saver. Each message says what to do."""

from __future__ import annotations

from ..errors import HoldpointError


class Unsaveable(HoldpointError):
    """A value of the graph's state could not be restored as it is, so it is not saved."""


class Unreadable(HoldpointError):
    """A saved value is damaged, from a newer version, or of a class that the program did not allow."""
