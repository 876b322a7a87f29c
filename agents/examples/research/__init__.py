"""The research agent: it splits a topic into questions, lets a run of its own answer each, and writes the report.

It uses no model: passages come from the bundled corpus by the words that they share with a question. Each inquiry keeps
what it retrieved and a conversation that is summed up when its context is full. One that found restricted passages asks
people whether it may quote them; the others go on meanwhile.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from agents import Action, Agent, AgentError, Append, Card, effect, gate, step, undo
from agents.examples.nouns import Noun, keep_state


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


CONTEXT = 160  # characters of turns that are kept as they are
FIRST = 60  # characters of each older turn that its summary keeps


def trim_turns(turns: Sequence[Turn], most: int = CONTEXT) -> list[Turn]:
    """Return the newest turns that fit into `most` characters, after one turn that sums the older ones up."""
    kept: list[Turn] = []
    left = most
    for turn in reversed(turns):
        if len(turn.text) > left and kept:
            break
        kept.insert(0, turn)
        left -= len(turn.text)
    older = turns[: len(turns) - len(kept)]
    if not older:
        return kept
    summary = " / ".join(f"{turn.role}: {turn.text[:FIRST]}" for turn in older)
    return [Turn(role="summary", text=summary), *kept]


CORPUS = Path(__file__).parent / "corpus"
COMMON = re.compile(
    "a|an|and|are|at|by|does|for|has|have|how|in|is|it|long|many|may|much|of|often|on|or|that|the|there|to|what|who"
)
RESTRICTED = "(restricted)"


def search_corpus(question: str, most: int) -> list[Passage]:
    """Return the passages that share the most words with the question, the best first."""
    asked = words_of(question)
    rare = Counter(word for passage in read_corpus() for word in set(words_of(passage.text)))
    scored = [
        (sum(1 / rare[word] for word in set(asked) & set(words_of(passage.text))), passage) for passage in read_corpus()
    ]
    best = sorted((pair for pair in scored if pair[0]), key=lambda pair: (-pair[0], pair[1].source))
    return [passage for _, passage in best[:most]]


def read_corpus() -> list[Passage]:
    """Return every sentence of the corpus with its source."""
    found = []
    for file in sorted(CORPUS.glob("*.md")):
        title, _, body = file.read_text().partition("\n")
        for sentence in re.split(r"(?<=[.;])\s+", " ".join(body.split())):
            found.append(Passage(source=file.stem, text=sentence, restricted=RESTRICTED in title))
    return found


def words_of(text: str) -> list[str]:
    """Return the words of a text that say something, without their endings."""
    return [
        re.sub(r"(es|s|ed|ing)$", "", word)
        for word in re.findall(r"[a-z]+", text.lower())
        if not COMMON.fullmatch(word)
    ]


MOST = 2  # passages of one inquiry


class Inquiry(Agent):
    """Answer one question from the corpus: search, ask about what is restricted, read, answer."""

    name = "inquiry"
    version = "3"
    team = "Support"
    from_1, from_2 = map(keep_state, "12")

    class State(Noun):
        """What is saved after every step."""

        question: str = Field(min_length=3, max_length=300)
        passages: list[Passage] = Field(default_factory=list)
        quoted: list[Passage] = Field(default_factory=list)
        turns: list[Turn] = Field(default_factory=list)
        feedback: list[Feedback] = Field(default_factory=list)
        cleared: bool = False
        answer: Answer | None = None

    @classmethod
    def title(cls, state: State) -> str:
        """Say what is asked."""
        return state.question

    @classmethod
    def result(cls, state: State) -> str:
        """Say what was found."""
        return state.answer.text if state.answer else ""

    @step(title="Search the corpus", uses=[search_corpus, read_corpus, words_of])
    def search(self, question: str, feedback: list[Feedback]) -> dict[str, Any]:
        """Retrieve passages; after a no, only those that anybody may read."""
        found = search_corpus(question, MOST)
        if feedback:
            found = [passage for passage in found if not passage.restricted]
        return {"passages": found, "turns": [Turn(role="reader", text=question)]}

    @gate(title="May this be quoted", policy="research", allows=["clear"], on_reject="search", on_skip="read")
    def ask(self, question: str, passages: list[Passage]) -> Card | None:
        """Ask only if something restricted was found."""
        secret = [passage for passage in passages if passage.restricted]
        if not secret:
            return None
        sources = dict.fromkeys(passage.source for passage in secret)
        return Card(
            title=f"Quote from {' and '.join(sources)}, which is restricted",
            summary=question,
            risk="medium",
            reasons=[f"{passage.source}: {passage.text}" for passage in secret],
            actions=[Action(id="clear", title="Quote them", effect="clear", pointer="/passages")],
        )

    @effect(title="Note that they may be quoted", undo="forget", idempotent=True)
    def clear(self, passages: list[Passage]) -> dict[str, Any]:
        """Note the permission; nothing outside is changed."""
        return {"cleared": True}

    @undo(idempotent=True)
    def forget(self) -> None:
        """Do nothing: the permission is in the state alone."""

    @step(title="Read the passages", uses=[trim_turns])
    def read(self, passages: list[Passage], turns: list[Turn], cleared: bool) -> dict[str, Any]:
        """Read one passage after the other, and sum older turns up when the context is full."""
        for passage in passages:
            turns = trim_turns([*turns, Turn(role=passage.source, text=passage.text)])
        return {"quoted": [passage for passage in passages if cleared or not passage.restricted], "turns": turns}

    @step(title="Answer")
    def conclude(self, question: str, quoted: list[Passage], turns: list[Turn]) -> dict[str, Any]:
        """Answer with what may be quoted."""
        text = " ".join(passage.text for passage in quoted) or "The corpus says nothing about it."
        sources = list(dict.fromkeys(passage.source for passage in quoted))
        answer = Answer(question=question, text=text, sources=sources)
        return {"answer": answer, "turns": Append([Turn(role="writer", text=text)])}


class Research(Agent):
    """Research a topic: one inquiry for each question, all at once, and a report."""

    name = "research"
    version = "3"
    team = "Support"
    from_1, from_2 = map(keep_state, "12")
    children_at_once = 5

    class State(Noun):
        """What is saved after every step."""

        topic: str = Field(min_length=3, max_length=200)
        questions: list[str] = Field(min_length=1, max_length=20)
        answers: list[Answer] = Field(default_factory=list)
        report: str = ""

    @classmethod
    def title(cls, state: State) -> str:
        """Say what is researched."""
        return state.topic

    @classmethod
    def result(cls, state: State) -> str:
        """Return the report."""
        return state.report

    @classmethod
    def inputs_from(cls, path: Path) -> list[dict[str, Any]]:
        """One input from a .json file."""
        if path.suffix != ".json" or not path.is_file():
            raise AgentError(f"{path} is not a .json file.")
        return [json.loads(path.read_bytes())]

    @step(title="Look at the questions")
    def plan(self, questions: list[str]) -> dict[str, Any]:
        """Take each question once."""
        return {"questions": list(dict.fromkeys(questions))}

    @step(title="Ask around")
    def ask_around(self, questions: list[str]) -> dict[str, Any]:
        """Start an inquiry for each question, and wait for all of them; no worker is held."""
        children = [self.spawn("inquiry", {"question": question}, name=question) for question in questions]
        return {"answers": [Answer.model_validate(run.state["answer"]) for run in self.gather(*children) if run]}

    @step(title="Write the report")
    def write(self, topic: str, answers: list[Answer]) -> dict[str, Any]:
        """Put the answers together, with their sources."""
        parts = [f"{answer.question}\n{answer.text} ({', '.join(answer.sources) or 'no source'})" for answer in answers]
        return {"report": "\n\n".join([topic, *parts])}
