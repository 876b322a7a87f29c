"""The nouns of the research example."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.examples.nouns import Noun


class Passage(Noun):
    """A sentence of the corpus. A restricted one is quoted only if somebody allows it."""

    source: str
    text: str
    restricted: bool = False


class Turn(Noun):
    """One turn of the conversation in which an inquiry works."""

    role: str
    text: str


class Answer(Noun):
    """The answer to one question, with the sources that it rests on."""

    question: str
    text: str
    sources: list[str] = Field(default_factory=list)


class Feedback(BaseModel):
    """A reviewer's words. The runner fills it in."""

    text: str
    by: str
    at: str
    gate: int
