"""The administration: policies and teams are written here, as versions and with events; history is read."""

from checkpoints.admin import ReadOnlyAdmin

from . import accounts, history, policies, teams

__all__ = ["ReadOnlyAdmin", "accounts", "history", "policies", "teams"]
