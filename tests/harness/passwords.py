"""Django's own way with passwords, but quick: a test that signs in forty times does not show a long hash forty times.

Only the tests' own process hashes so. A web server that a test starts reads such a hash as one of its own, made with
too few rounds, and hashes the password as in production.
"""

from __future__ import annotations

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class Quick(PBKDF2PasswordHasher):
    """Hashes with one round."""

    iterations = 1
