"""The administration of the store: history is read, and its lists are bounded; retention is ordered here."""

from . import history, holds, policies, prunes
from .base import ReadOnlyAdmin

__all__ = ["ReadOnlyAdmin", "history", "holds", "policies", "prunes"]
