"""The store's administration: history, read only and in bounded lists, and retention, ordered here."""

from . import history, holds, prunes
from .base import ReadOnlyAdmin

__all__ = ["ReadOnlyAdmin", "history", "holds", "policies", "prunes"]
