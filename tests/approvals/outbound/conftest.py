"""Receivers on this machine: those of the webhooks' tests."""

from __future__ import annotations

from tests.approvals.webhooks.conftest import loopback, new_receiver, receiver

__all__ = ["loopback", "new_receiver", "receiver"]
