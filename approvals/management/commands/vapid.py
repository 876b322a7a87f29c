"""`manage.py vapid`: makes a key for Web Push."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from approvals.channels import vapid


class Command(BaseCommand):
    help = "Print a new key for Web Push, as a line for the environment. Nothing is stored."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"HOLDPOINT_VAPID_KEY={vapid.make()}")
