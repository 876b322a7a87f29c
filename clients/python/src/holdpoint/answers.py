"""Models of the server's answers. Members that a newer server adds are ignored."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, RootModel, field_validator


class Answer(BaseModel):
    """An answer of the server; it is immutable."""

    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())


class Begun(Answer):
    """An effect whose intent is written: it is done once, under this key."""

    id: int
    key: str
    grant: int | None = None
    action: str = ""
    attempts: int = 1


class Undone(Answer):
    """An effect that is to be undone."""

    id: int
    key: str
    undo: str


class Next(Answer):
    """The next step, gate, effect or undo; an empty kind if there is nothing to do now."""

    kind: str
    step: str
    effect: Begun | None = None
    undoes: Undone | None = None


class Turn(Answer):
    """The run's status, and its program's next piece of work. `state` comes with a claim and with a begun effect."""

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
    def nothing(cls, value: Any) -> Any:
        """Read null as a Next without a kind: nothing to do now."""
        return value or Next(kind="", step="")

    @property
    def ended(self) -> bool:
        """Tell whether the run has ended."""
        return self.status in ("completed", "failed", "cancelled")


class Turns(Answer):
    """The runs of several gates that were posted together, in their order."""

    gates: list[Turn]


class Beat(Answer):
    """The state of a claim."""

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
    deadline: datetime | None = None
    finished_at: datetime | None = None
    gates: list[int]
    parent: int | None = None
    children: dict[str, int] = {}


class Version(Answer):
    """A registered version of an agent."""

    agent: str
    version: str
    digest: str


class ActionOutcome(Answer):
    """The verdict on one action: approve, edit, reject or respond."""

    verdict: str
    by: str = ""
    reason: str = ""
    response: Any = None


class Ending(Answer):
    """The end of a gate."""

    kind: str
    by: str
    at: datetime
    feedback: str = ""
    actions: dict[str, ActionOutcome] = {}
    arguments: dict[str, Any] = {}
    answer: Any = None
    seen: str = ""  # the digest of the proposal that was decided on


class Granted(Answer):
    """The right to do one effect once."""

    id: int
    effect: str
    action: str
    used: bool


class Signal(Answer):
    """A signal that was sent to a run, with its value."""

    id: int
    name: str
    key: str = ""
    by: str
    value: Any = None


class Signals(Answer):
    """Signals of one name, oldest first."""

    items: list[Signal] = []


class Outcome(Answer):
    """The outcome of a gate: its status, the exact edits by action id as JSON Patches, and the grants."""

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
        """Tell whether the gate is still open."""
        return self.status == "open"


class HandedOut(Answer):
    """An approval that only one call has: `yours`, and since when; `first`: by this request."""

    at: datetime
    yours: bool
    first: bool


class Question(Answer):
    """A question that somebody put to the program at its gate."""

    id: int
    gate: int
    status: str
    by: str
    text: str | None = None
    answer: str | None = None


class Questions(Answer):
    """The questions at a gate."""

    items: list[Question] = []


class Vote(Answer):
    """One person's vote."""

    name: str
    verdict: str
    comment: str = ""
    at: datetime | None = None
    counts: bool = True


class Agreement(Answer):
    """The votes that a gate needs, and has."""

    quorum: int
    agreed: int
    who: str
    voices: list[Vote]
    needs: str = ""
    asked: str = ""
    rules: list[str] = []
    rejected: int = 0


class Gate(Answer):
    """A gate with its proposal. `url` is its page, on which people decide."""

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
    digest: str = ""  # of the card, in hex
    masked: list[str] = []  # pointers to the secrets in the card, which are placeholders
    outcome: Ending | None = None

    @property
    def actions(self) -> list[str]:
        """Return the ids of its actions."""
        return [str(action["id"]) for action in self.card.get("actions", [])]


class Checkpoint(Answer):
    """A checkpoint without its state."""

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
    """Some checkpoints, newest first; send `next` as `cursor` to continue."""

    items: list[Checkpoint]
    next: str | None = None


class Event(Answer):
    """One event and its subject, never content."""

    cursor: str
    kind: str
    subject: str
    run: str
    version: int
    title: str


class Events(Answer):
    """Some events, oldest first; send `next` as `after` to continue, at once where there is `more`."""

    items: list[Event]
    next: str
    more: bool


class Patch(RootModel[list[dict[str, Any]]]):
    """A JSON Patch."""
