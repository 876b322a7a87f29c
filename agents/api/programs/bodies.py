"""Request bodies of external programs that work on a run: see agents.api.programs.work."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from agents.api.gates.cards import AskedCard
from agents.api.protocol import ApiSchema
from agents.api.runs.moves import Order

TOKEN = Field(description="The claim token, which the claim answered.", ge=1, le=2**62, examples=[3])
STEP = Field(description="The step of the plan.", min_length=1, max_length=100, examples=["draft"])
TOOK = Field(0.0, description="How long it took, in seconds.", ge=0, le=10**7, examples=[1.25])
NOTES: Any = Field(
    [],
    description="What the step did and why, in the agent's words; shown with the checkpoint.",
    max_length=50,
    examples=[["A look-up."]],
)
ERROR = Field(
    description="What went wrong, in one line.", min_length=1, max_length=2000, examples=["503 from the bank"]
)
RETRY = Field(
    False,
    description="Whether it may be retried automatically: for an effect, that nothing was sent.",
    examples=[False],
)


class ClaimBody(Order):
    """Claim a run that nobody works on."""

    example: ClassVar = {"worker": "box:81", "lease": 60}

    worker: str = Field("", max_length=120)
    """Who works on the run, for people: host and process."""
    lease: float = Field(60.0, ge=1, le=3600)
    """Seconds during which nobody else may claim it; every request of yours starts them again."""


class ClaimedRequest(Order):
    """A request under a claim."""

    token: int = TOKEN


class Heartbeat(ClaimedRequest):
    """Report that you are still working."""


class HeartbeatAnswer(ApiSchema):
    """The state of the claim."""

    example: ClassVar = {"halt": False, "lease": 60}

    halt: bool
    """Whether a person asks you to stop, because they want to move the run: finish the current step, or release the
    run."""
    lease: float
    """Seconds from now for which nobody else may claim the run."""


class SetField(Order):
    """Give a field a new value."""

    example: ClassVar = {"op": "set", "field": "draft", "value": "Dear Marit"}

    op: Literal["set"]
    """What to do."""
    field: str = Field(max_length=100)
    """The field."""
    value: Any
    """Its new value."""


class AppendItems(Order):
    """Add items to the end of a list."""

    example: ClassVar = {"op": "append", "field": "messages", "items": [{"role": "user", "text": "Pay it."}]}

    op: Literal["append"]
    """What to do."""
    field: str = Field(max_length=100)
    """The field."""
    items: list[Any]
    """The added values."""


class SpliceItems(Order):
    """Replace items of a list by others."""

    example: ClassVar = {"op": "splice", "field": "messages", "start": 0, "delete": 2, "items": []}

    op: Literal["splice"]
    """What to do."""
    field: str = Field(max_length=100)
    """The field."""
    start: int = Field(ge=0, le=2**40)
    """The index at which the change begins."""
    delete: int = Field(ge=0, le=2**40)
    """How many items are removed."""
    items: list[Any] = []
    """What comes in their place."""


Op = Annotated[SetField | AppendItems | SpliceItems, Field(discriminator="op")]


class Wrote(Order):
    """The writes of a step: `ops` on the fields that changed, or the whole `state`."""

    example: ClassVar = {
        "ops": [{"op": "append", "field": "messages", "items": [{"role": "user", "text": "Pay it."}]}], "state": None,
        "next_step": None,
    }  # fmt: skip

    step: str = STEP
    ops: list[Op] | None = Field(None, max_length=500)
    """One for each field that changed. An append costs what it adds, however long the list is."""
    state: dict[str, Any] | None = None
    """Instead of `ops`: the whole new state, with every field."""
    next_step: str | None = Field(None, max_length=100)
    """The step to go on with, if not the next step of the plan; empty: the run is done. The plan must allow the step to
    go there."""
    took: float = TOOK
    notes: list[str] = NOTES


class Save(Wrote):
    """The writes of a step, as the run's next checkpoint."""

    token: int = TOKEN


class SaveAll(ClaimedRequest):
    """The writes of several steps, one after the other: a checkpoint each."""

    checkpoints: list[Wrote] = Field(min_length=1, max_length=100)
    """The oldest first. All of them are saved, or none."""


class Ask(AskedCard):
    """Open a gate of the plan and wait there; the run is released meanwhile."""

    example: ClassVar = {"step": "review", "deferred": False}

    token: int = TOKEN
    step: str = Field(min_length=1, max_length=100)
    """The gate's step of the plan."""
    took: float = TOOK
    notes: list[str] = NOTES
    deferred: bool = False
    """Whether you disconnect and come back for the outcome; then you are not treated as lost."""


class Begin(ClaimedRequest):
    """Begin an effect or an undo: its intent is written, and the grant used."""

    example: ClassVar = {"step": "wire", "undoes": None}

    step: str = Field("", max_length=100)
    """The effect's step of the plan."""
    undoes: int | None = Field(None, ge=1, le=2**62)
    """Instead of `step`: the number of the effect to undo."""


class Report(ClaimedRequest):
    """The result of an effect that you began."""

    example: ClassVar = {"status": "done", "writes": {"wire_result": {"id": "tx_1"}}, "error": "", "next_step": None}

    status: Literal["done", "failed", "unknown"]
    """done: it happened. failed: it certainly did not. unknown: nobody knows, as after a timeout."""
    writes: dict[str, Any] = {}
    """If done: the fields that it writes."""
    error: str = Field("", max_length=2000)
    """If not done: what went wrong."""
    retry: bool = RETRY
    next_step: str | None = Field(None, max_length=100)
    """As for a checkpoint."""
    took: float = TOOK
    notes: list[str] = NOTES


class FailureBody(ClaimedRequest):
    """A step failed."""

    step: str = STEP
    error: str = ERROR
    retry: bool = RETRY


class RunEnding(ClaimedRequest):
    """End the run: it is done, or it failed for good."""

    example: ClassVar = {"status": "completed", "reason": ""}

    status: Literal["completed", "failed"]
    """How it ends."""
    reason: str = Field("", max_length=300)
    """The reason, in one line."""
