"""Checks the names that people give themselves, or that a provider of single sign-on gives them.

Others decide by the names they read, so nobody takes a colleague's, or one that reads like it.
"""

from __future__ import annotations

import unicodedata

from django.contrib.auth.models import User
from django.db.models import CharField, Func, Q, Value
from django.db.models.functions import Concat, Trim

from checkpoints.postgresql.sql import run_sql

from .text import invisible, lookalikes

LONGEST = 150  # characters of a name, as Django's columns hold
_IN_TURN = "SELECT pg_advisory_xact_lock(hashtextextended('names of people', 0))"


def normal_form(name: str) -> str:
    """Return a name as it is stored: its words apart by one blank, each letter and its marks as one character."""
    return " ".join(unicodedata.normalize("NFC", name).split())


def fault(user: User, *, first_name: str, last_name: str) -> str:
    """Say what is wrong with a name for this person; "" for nothing.

    Until the end of the caller's transaction, which then writes the name, nobody else's is checked.
    """
    whole = normal_form(f"{first_name} {last_name}")
    if not whole or max(len(first_name), len(last_name)) > LONGEST:
        return f"Write your name, at most {LONGEST} characters each."
    if "\0" in whole or any(piece.note for piece in invisible.visible(whole, value=True)) or lookalikes.in_word(whole):
        return "This name has characters that are invisible or look like others. Write it in plain letters."
    if (first_name, last_name) == (user.first_name, user.last_name):
        return ""
    run_sql(_IN_TURN, [])
    name = Trim(Concat("first_name", Value(" "), "last_name"))
    others = User.objects.exclude(pk=user.pk).alias(whole=Func(name, function="NORMALIZE", output_field=CharField()))
    if others.filter(Q(username__iexact=whole) | Q(whole__iexact=whole)).exists():
        return "Somebody else has this name. Add to yours what tells you apart."
    return ""
