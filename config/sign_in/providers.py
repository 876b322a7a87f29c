"""Single sign-on by settings: each provider's address, client and rules, from variables that bear its name.

HOLDPOINT_OIDC=corp
HOLDPOINT_OIDC_CORP_ISSUER=https://login.example.org
HOLDPOINT_OIDC_CORP_CLIENT_ID=holdpoint
HOLDPOINT_OIDC_CORP_CLIENT_SECRET=…
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from config.environment import EnvironmentReader

NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
SCOPES = ("openid", "profile", "email")
LOOPBACK = ("http://127.0.0.1:", "http://localhost:")


@dataclass(frozen=True)
class Provider:
    """One provider of single sign-on, and what its word is taken for."""

    name: str  # in addresses and rows
    label: str  # on the button
    issuer: str
    client_id: str
    secret: str
    scopes: tuple[str, ...] = SCOPES
    claim: str = "groups"  # the claim that lists a person's groups there
    groups: Mapping[str, str] = field(default_factory=dict)  # value of the claim -> team here
    staff: frozenset[str] = frozenset()  # values that make staff; none: never made nor unmade
    superusers: frozenset[str] = frozenset()
    creates: bool = False  # makes accounts for people who have none
    links: bool = False  # links an account that has the same, verified e-mail address
    vouches: bool = False  # counts as a second factor


def read_providers(env: EnvironmentReader) -> dict[str, Provider]:
    """Read the providers named in HOLDPOINT_OIDC; complains of what cannot work."""
    found = {}
    #: ## People
    #: Names of providers of single sign-on, in small letters. docs/settings.md lists the variables that each has.
    for name in env.words("HOLDPOINT_OIDC"):
        if NAME.fullmatch(name):
            found[name] = _read(env, name, f"HOLDPOINT_OIDC_{name.upper()}_")
        else:
            env.complaints.append(f"HOLDPOINT_OIDC holds {name!r}; write names in small letters, with commas.")
    return found


def _read(env: EnvironmentReader, name: str, prefix: str) -> Provider:
    #: ## Each provider of single sign-on
    #: Its address: HOLDPOINT_OIDC_CORP_ISSUER=https://login.example.org for a provider that HOLDPOINT_OIDC calls corp.
    issuer = env.url(f"{prefix}ISSUER", ("https", "http"), required=f"it is the address of {name}")
    if issuer.startswith("http://") and not issuer.startswith(LOOPBACK):
        env.complaints.append(f"{prefix}ISSUER must start with https://: what it says is believed.")
    return Provider(
        name=name,
        #: What the button says. Default: its name.
        label=env.text(f"{prefix}LABEL", name.capitalize()),
        issuer=issuer,
        #: The name by which it knows Holdpoint.
        client_id=env.text(f"{prefix}CLIENT_ID", required=f"{name} gave it to Holdpoint"),
        #: What it gave to Holdpoint with that.
        secret=env.text(f"{prefix}CLIENT_SECRET", required=f"{name} gave it to Holdpoint"),
        #: What is asked for. Default: openid,profile,email. Some providers send groups only for a scope of their own.
        scopes=tuple(env.words(f"{prefix}SCOPES", SCOPES)),
        #: The claim that lists a person's groups.
        claim=env.text(f"{prefix}CLAIM", "groups"),
        #: Which value of the claim is which team here: finance=Finance,legal=Legal.
        groups=env.pairs(f"{prefix}GROUPS"),
        #: Values that make staff.
        staff=frozenset(env.words(f"{prefix}STAFF")),
        #: Values that make superusers.
        superusers=frozenset(env.words(f"{prefix}SUPERUSERS")),
        #: 1: make an account for somebody who has none.
        creates=env.boolean(f"{prefix}CREATES", False),
        #: 1: link an account that has the same, verified e-mail address.
        links=env.boolean(f"{prefix}LINKS", False),
        #: 1: it asks for a second factor itself, so its word counts as one.
        vouches=env.boolean(f"{prefix}SECOND_FACTOR", False),
    )


def as_settings(providers: Mapping[str, Provider]) -> dict[str, Any]:
    """Return the providers as allauth's settings: PKCE always, tokens never kept."""
    apps = [
        {
            "provider_id": provider.name, "name": provider.label,
            "client_id": provider.client_id, "secret": provider.secret,
            "settings": {"server_url": provider.issuer, "oauth_pkce_enabled": True, "scope": list(provider.scopes)},
        }
        for provider in providers.values()
    ]  # fmt: skip
    return {"openid_connect": {"APPS": apps, "provider_class": "config.sign_in.openid.Connect"}}
