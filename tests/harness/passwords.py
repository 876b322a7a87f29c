"""Django's own way with passwords, but quick: a test that signs in forty times does not show a long hash forty times.

A web server that a test starts hashes as in production, so what it is to read is not made in this way.
"""

from __future__ import annotations

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class Quick(PBKDF2PasswordHasher):
    iterations = 1
