"""Makes the links by which people set a new password: each works once, for PASSWORD_RESET_TIMEOUT seconds."""

from __future__ import annotations

from allauth.account.utils import user_pk_to_url_str
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.urls import reverse


def path(user: User) -> str:
    """Return the path of a new link; it is void once the person signs in, or their password or address changes."""
    named = {"uidb36": user_pk_to_url_str(user), "key": default_token_generator.make_token(user)}
    return reverse("account_reset_password_from_key", kwargs=named)
