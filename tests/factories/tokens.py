"""Tokens, and clients that send them."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import Group, User
from django.test import Client

from agents import tokens
from agents.models import Token, TokenScope
from agents.models.token import FOR_AGENTS
from checkpoints import actors


def make_token(
    owner: User,
    *scopes: str,
    team: Group | None = None,
    agent: str = "",
    name: str = "nightly export",
    policy: str = "",
    lasts: timedelta = timedelta(days=1),
) -> tuple[Token, str]:
    """Make a token of this person, or of an agent that they answer for; for everything unless scopes are given."""
    default = FOR_AGENTS if agent else tuple(TokenScope)
    return tokens.issue(
        owner=owner, name=name, scopes=[str(each) for each in scopes or default], lasts=lasts, team=team, agent=agent,
        policy=policy, by=actors.of_user(owner),
    )  # fmt: skip


def bearing(sent: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {sent}"})
