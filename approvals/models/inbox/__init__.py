"""Keeps people's own of the inbox: bulk decisions, saved views and snoozed gates."""

from .bulk import BulkItem, BulkOrder
from .saved_view import SavedView
from .snooze import Snooze

__all__ = ["BulkItem", "BulkOrder", "SavedView", "Snooze"]
