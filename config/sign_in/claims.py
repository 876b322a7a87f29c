"""Turns a provider's claims into teams here. Pure.

Only teams that the settings name are given and taken; any other membership is an administrator's and stays. Claims
that say nothing of groups take all of those away: silence is no membership. Staff and superusers are made and unmade
only where the settings say by which value.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from .providers import Provider


@dataclass(frozen=True)
class Rights:
    """The rights that claims give: teams, of those that are `managed`, and the two marks; None: not managed."""

    teams: frozenset[str]
    managed: frozenset[str]
    staff: bool | None
    superuser: bool | None


def rights_from_claims(claims: Mapping[str, Any], provider: Provider) -> Rights:
    """Return what a person gets by these claims."""
    names = values(claims.get(provider.claim))
    teams = frozenset(team for value, team in provider.groups.items() if value in names)
    superuser = bool(names & provider.superusers) if provider.superusers else None
    staff = bool(names & provider.staff) if provider.staff else None
    return Rights(teams, frozenset(provider.groups.values()), staff, superuser)


def values(claim: Any) -> Set[str]:
    """Return the values of a claim: a list of texts, or one text; anything else says nothing."""
    if isinstance(claim, str):
        return {claim}
    return {word for word in claim if isinstance(word, str)} if isinstance(claim, list) else set()


def verified_email(claims: Mapping[str, Any]) -> str:
    """Return the e-mail address that the provider says it verified; "" for any other.

    Only the boolean counts: a text "false" is true to Python.
    """
    email = claims.get("email")
    return email if isinstance(email, str) and claims.get("email_verified") is True else ""
