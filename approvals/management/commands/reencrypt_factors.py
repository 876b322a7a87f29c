from __future__ import annotations

from typing import Any

from allauth.mfa.models import Authenticator
from django.core.management.base import BaseCommand
from django.db import transaction

from approvals.accounts import factors


class Command(BaseCommand):
    help = "Encrypt the secrets of all second factors by the newest secret key, so that an older one can be dropped."

    def handle(self, *args: Any, **options: Any) -> None:
        renewed, unreadable = 0, set()
        for number in list(Authenticator.objects.order_by("pk").values_list("pk", flat=True)):
            with transaction.atomic():
                row = Authenticator.objects.select_for_update().filter(pk=number).first()
                if row is None:
                    continue
                try:
                    factors.renew(row)
                    renewed += 1
                except factors.SecretUnreadable:
                    unreadable.add(row.user_id)
        self.stdout.write(f"Renewed: {renewed}. Encrypted by no key that is set: those of {len(unreadable)} people.")
        for user in sorted(unreadable):
            self.stdout.write(f"- of user {user}: remove them in the administration.")
