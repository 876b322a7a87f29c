"""The administration: policies and teams are written here, as versions and with events; history is read."""

from checkpoints.admin import ReadOnlyAdmin

from . import history, people, policies

__all__ = ["ReadOnlyAdmin", "history", "people", "policies"]
