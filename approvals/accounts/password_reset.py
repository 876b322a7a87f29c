"""Makes the links by which people set a new password: each works once, for PASSWORD_RESET_TIMEOUT seconds."""

from __future__ import annotations

from typing import Any

from allauth.account.utils import user_pk_to_url_str
from django.contrib.auth.models import User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.db.models import Max
from django.urls import reverse

from checkpoints.models import Event


class LinkKeys(PasswordResetTokenGenerator):
    """Makes the keys of links.

    Django's are void once their person signs in, or their password or address changes. These are too once anything of
    the account changes: one that was switched off is shut for links of before when it is on again.
    """

    def _make_hash_value(self, user: Any, timestamp: int) -> str:
        changed = Event.objects.filter(kind="user.changed", subject=f"user:{user.pk}").aggregate(last=Max("pk"))["last"]
        return f"{super()._make_hash_value(user, timestamp)}{changed or ''}{'' if user.is_active else 'off'}"


def path(user: User) -> str:
    """Return the path of a new link."""
    named = {"uidb36": user_pk_to_url_str(user), "key": LinkKeys().make_token(user)}
    return reverse("account_reset_password_from_key", kwargs=named)
