"""The administration: policies and teams are written here, as versions and with events; history is read-only."""

from checkpoints.admin import ReadOnlyAdmin

from . import (
    accounts,
    calendars,
    chat_channels,
    deliveries,
    history,
    notices,
    policies,
    policy_changes,
    teams,
    tools,
    webhooks,
)

__all__ = [
    "ReadOnlyAdmin",
    "accounts",
    "calendars",
    "chat_channels",
    "deliveries",
    "history",
    "notices",
    "policies",
    "policy_changes",
    "teams",
    "tools",
    "webhooks",
]
