from __future__ import annotations

from typing import Any

from allauth.mfa.models import Authenticator
from django.core.management.base import BaseCommand
from django.db import transaction

from approvals.accounts import sealing


class Command(BaseCommand):
    help = "Encrypt and seal all second factors by the newest secret key, so that an older one can be dropped."

    def handle(self, *args: Any, **options: Any) -> None:
        renewed, broken = 0, []
        for number in list(Authenticator.objects.order_by("pk").values_list("pk", flat=True)):
            with transaction.atomic():
                row = Authenticator.objects.select_for_update().filter(pk=number).first()
                if row is None:
                    continue
                try:
                    sealing.reseal(row)
                    renewed += 1
                except sealing.Tampered:
                    broken.append(row.user_id)
        self.stdout.write(f"Renewed: {renewed}. Changed outside Holdpoint, so left: {len(broken)}.")
        for user in sorted(set(broken)):
            self.stdout.write(f"- of user {user}: remove them in the administration.")
