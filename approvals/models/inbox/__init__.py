"""Keeps people's own of the inbox: bulk decisions, saved views and snoozed gates."""

from .saved_view import BulkItem, BulkOrder, SavedView, Snooze

__all__ = ["BulkItem", "BulkOrder", "SavedView", "Snooze"]
