"""The administration: policies and teams are written here, as versions and with events; history is read-only."""

from . import accounts, calendars, chat_channels, history, messages, policies, teams, tools, webhooks  # noqa: F401
