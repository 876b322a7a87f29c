"""The nouns of the rollout example."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from agents.examples.nouns import Noun


class Stage(Noun):
    """A version on so many servers."""

    service: str
    version: str
    servers: int = Field(ge=1)


class Release(Noun):
    """A release as the servers' control plane tells of it."""

    id: str
    status: str
    at: datetime


class Health(Noun):
    """How the servers do: the share of requests that fail, in percent, and who says so."""

    errors: float = Field(ge=0, le=100)
    by: str = ""


class Feedback(BaseModel):
    """A reviewer's words. The runner fills it in."""

    text: str
    by: str
    at: str
    gate: int
