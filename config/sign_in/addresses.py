"""Finds the accounts of an e-mail address, whose owner may be let into them.

In most locales the database holds letters to be the same that are not: a dotless i is an I to it. Whoever has the
mailbox of such an address would be sent the link to another's account (CVE-2019-19844), so only the case of ASCII is
overlooked.
"""

from __future__ import annotations

from django.contrib.auth.models import User


def accounts_of(email: str) -> list[User]:
    """List the active accounts that have this address."""
    found = User.objects.filter(email__iexact=email, is_active=True) if email else []
    return [user for user in found if same(user.email, email)]


def same(address: str, other: str) -> bool:
    """Tell whether two addresses are one. Pure."""
    return address == other or (address.isascii() and other.isascii() and address.lower() == other.lower())
