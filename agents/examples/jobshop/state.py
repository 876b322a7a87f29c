"""The data types of a job shop, as they are saved in a run's state. Jobs, operations and machines count from 0."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from agents.examples.nouns import Noun

from .planning import RULES
from .reading import read_shop
from .shop import Plant

MOST_TEXT = 400_000  # characters of an instance's file
LATEST = 10**9  # of any moment

Row = tuple[int, int, int, int, int, int]  # job, index, machine, start, end, moved: see Schedule
Moment = int


class Source(Noun):
    """An instance's file: its name, and its text in the form that `reading` reads."""

    name: str = Field(min_length=1, max_length=100)
    text: str = Field(max_length=MOST_TEXT)

    @field_validator("text")
    @classmethod
    def can_be_read(cls, text: str) -> str:
        """Refuse a text with every fault and its line."""
        read_shop(text)
        return text

    @classmethod
    def read(cls, file: Path) -> Source:
        """Read a file. Raises OSError and ValidationError."""
        with file.open(encoding="utf-8", errors="replace") as source:
            return cls(name=file.stem[:100], text=source.read(MOST_TEXT + 1))


class Instance(Noun):
    """A shop as it was read: `jobs` has (machine, duration) for each operation of each job."""

    machines: int
    jobs: list[list[tuple[int, int]]]

    @property
    def plant(self) -> Plant:
        return Plant(self.machines, self.jobs)

    @property
    def size(self) -> int:
        return sum(len(job) for job in self.jobs)


class Breakdown(Noun):
    """A machine stops at `since` and is back at `until`. What is left out is derived from the first schedule."""

    machine: int | None = Field(default=None, ge=0)
    since: Moment | None = Field(default=None, ge=0, le=LATEST)
    until: Moment | None = Field(default=None, ge=1, le=LATEST)

    @field_validator("until")
    @classmethod
    def ends_after_it_begins(cls, until: Moment | None, info: ValidationInfo) -> Moment | None:
        since = info.data.get("since")
        if until is not None and since is not None and until <= since:
            raise ValueError(f"it has to be later than {since}, when the machine stops")
        return until


class Downtime(Noun):
    """A breakdown with nothing left open."""

    machine: int
    since: Moment
    until: Moment


class Schedule(Noun):
    """A schedule in the form in which a gate draws it (approvals.presentation.drawing.gantt).

    `operations` has a row of six for each: job, index within the job, machine, start, end, and 0 where it starts as
    planned, 1 where it starts at another time, 2 where it has also come to another place in its machine's order.
    """

    machines: int
    operations: list[Row]
    downtimes: list[tuple[int, Moment, Moment]] = Field(default_factory=list)  # machine, from, until
    now: Moment | None = None  # what begins before it is past
    makespan: Moment


class Repair(Schedule):
    """A schedule after a breakdown, and what it took."""

    retimed: int  # operations that start at another time than planned
    resequenced: int  # of them, those that had to change places
    ms: int
    how: str  # one sentence


class Feedback(BaseModel):
    """What a reviewer wrote who sent the run back, or what a validator said. The runner may know more."""

    text: str
    by: str = ""
    at: str = ""
    gate: int = 0


class Decision(BaseModel):
    """How the last gate ended. The runner fills it in, and may know more."""

    gate: str
    kind: str
    by: str
    changes: list[dict[str, Any]] = Field(default_factory=list)
    answer: dict[str, Any] | None = None


class Published(Noun):
    """A schedule on the shop floor's board: the key that it was published under, and its file's name."""

    key: str = Field(pattern=r"^[0-9a-f]{64}$")
    file: str


Chosen = Literal["", "local", "global"]


class Effort(Noun):
    """How hard to plan: the agent's configuration."""

    rule: str = "most work remaining"  # one of planning.RULES
    radius: int = Field(default=6, ge=0, le=100)  # rings around what was hit
    swaps: int = Field(default=2_000, ge=0, le=1_000_000)  # that are tried
    seconds: float = Field(default=5.0, gt=0, le=240)  # that the solver has
    workers: int = Field(default=2, ge=1, le=64)  # its threads

    @field_validator("rule")
    @classmethod
    def is_known(cls, rule: str) -> str:
        if rule not in RULES:
            raise ValueError(f"the rules are: {', '.join(RULES)}")
        return rule
