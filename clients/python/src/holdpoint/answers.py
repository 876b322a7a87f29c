"""What the server answers, as models. Members that a newer server adds are passed over."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, RootModel, field_validator


class Answer(BaseModel):
    """Something that was read; it does not change."""

    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())


class Begun(Answer):
    """An effect whose intent is written: it is done once, under this key."""

    id: int
    key: str
    grant: int | None = None
    action: str = ""
    attempts: int = 1


class Undone(Answer):
    """An effect that is to be taken back."""

    id: int
    key: str
    undo: str


class Next(Answer):
    """What comes next: a step, a gate, an effect, an undo; an empty kind for nothing now."""

    kind: str
    step: str
    effect: Begun | None = None
    undoes: Undone | None = None


class Turn(Answer):
    """Where a run stands, and what its program has to do. `state` comes with a claim and with what is begun."""

    run: int
    status: str
    reason: str
    token: int
    seq: int
    gate: int | None = None
    gate_url: str | None = None
    next: Next = Next(kind="", step="")
    state: dict[str, Any] | None = None

    @field_validator("next", mode="before")
    @classmethod
    def nothing(cls, told: Any) -> Any:
        """Read null as a step without a kind: nothing comes next now."""
        return told or Next(kind="", step="")

    @property
    def ended(self) -> bool:
        """Tell whether nothing more is done in the run."""
        return self.status in ("completed", "failed", "cancelled")


class Beat(Answer):
    """How it stands with a claim."""

    halt: bool
    lease: float


class Run(Answer):
    """A run."""

    id: int
    title: str
    agent: str
    agent_version: str
    thread: str = ""
    team: str
    status: str
    reason: str
    next_step: str
    seq: int
    started_by: str
    created_at: datetime
    finished_at: datetime | None = None
    gates: list[int]


class Version(Answer):
    """A version of an agent that was registered."""

    agent: str
    version: str
    digest: str


class OfAction(Answer):
    """What became of one action: approve, edit, reject or respond."""

    verdict: str
    by: str = ""
    reason: str = ""
    response: Any = None


class Ending(Answer):
    """How a gate ended."""

    kind: str
    by: str
    at: datetime
    feedback: str = ""
    actions: dict[str, OfAction] = {}
    arguments: dict[str, Any] = {}
    answer: Any = None


class Granted(Answer):
    """The right to do one effect once."""

    id: int
    effect: str
    action: str
    used: bool


class Outcome(Answer):
    """Whether a gate has ended, and how: the exact edits by action id as JSON Patches, and what was allowed."""

    gate: int
    url: str = ""
    run: int
    status: str
    version: int
    grants: list[Granted]
    outcome: Ending | None = None
    edits: dict[str, list[dict[str, Any]]] = {}

    @property
    def open(self) -> bool:
        """Tell whether it still asks."""
        return self.status == "open"


class Voice(Answer):
    """One person's word."""

    name: str
    verdict: str
    comment: str = ""
    at: datetime | None = None
    counts: bool = True


class Agreement(Answer):
    """Who must agree, and who has."""

    quorum: int
    agreed: int
    who: str
    voices: list[Voice]


class Gate(Answer):
    """A gate with all that it asks. `url` is its page, on which people decide."""

    id: int
    url: str = ""
    run: int
    agent: str
    team: str
    step: str
    kind: str
    status: str
    version: int
    title: str
    risk: str
    deadline: datetime | None = None
    opened_at: datetime
    closed_at: datetime | None = None
    agreement: Agreement
    card: dict[str, Any]
    outcome: Ending | None = None

    @property
    def actions(self) -> list[str]:
        """Return the ids of what it asks about."""
        return [str(each["id"]) for each in self.card.get("actions", [])]


class Checkpoint(Answer):
    """A saved state's place in its run."""

    id: str
    seq: int
    parent: str | None = None
    kind: str
    step: str
    next_step: str
    at: datetime
    digest: str
    state_digest: str


class Saved(Checkpoint):
    """A checkpoint with its state; `masked` lists the secrets in it that are placeholders."""

    state: dict[str, Any]
    masked: list[str] = []


class Checkpoints(Answer):
    """Some checkpoints, newest first; `next` goes on as `cursor`."""

    items: list[Checkpoint]
    next: str | None = None


class Event(Answer):
    """What happened, to what; never content."""

    cursor: str
    kind: str
    subject: str
    run: str
    version: int
    title: str


class Events(Answer):
    """Some events, oldest first; `next` goes on as `after`, at once where there is `more`."""

    items: list[Event]
    next: str
    more: bool


class Patch(RootModel[list[dict[str, Any]]]):
    """A JSON Patch."""
