"""Request bodies of external programs that work on a run: see agents.api.programs.work."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field

from agents.api.gates.cards import AskedCard
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

    worker: str = Field(
        "", description="Who works on the run, for people: host and process.", max_length=120, examples=["box:81"]
    )
    lease: float = Field(
        60.0,
        description="Seconds during which nobody else may claim it; every request of yours starts them again.",
        ge=1,
        le=3600,
        examples=[60],
    )


class ClaimedRequest(Order):
    """A request under a claim."""

    token: int = TOKEN


class Heartbeat(ClaimedRequest):
    """Report that you are still working."""


class HeartbeatAnswer(Schema):
    """The state of the claim."""

    halt: bool = Field(
        description="Whether a person asks you to stop, because they want to move the run: finish the current step, "
        "or release the run.",
        examples=[False],
    )
    lease: float = Field(description="Seconds from now for which nobody else may claim the run.", examples=[60])


class SetField(Order):
    """Give a field a new value."""

    op: Literal["set"] = Field(description="What to do.", examples=["set"])
    field: str = Field(description="The field.", max_length=100, examples=["draft"])
    value: Any = Field(description="Its new value.", examples=["Dear Marit"])


class AppendItems(Order):
    """Add items to the end of a list."""

    op: Literal["append"] = Field(description="What to do.", examples=["append"])
    field: str = Field(description="The field.", max_length=100, examples=["messages"])
    items: list[Any] = Field(description="The added values.", examples=[[{"role": "user", "text": "Pay it."}]])


class SpliceItems(Order):
    """Replace items of a list by others."""

    op: Literal["splice"] = Field(description="What to do.", examples=["splice"])
    field: str = Field(description="The field.", max_length=100, examples=["messages"])
    start: int = Field(description="The index at which the change begins.", ge=0, le=2**40, examples=[0])
    delete: int = Field(description="How many items are removed.", ge=0, le=2**40, examples=[2])
    items: list[Any] = Field([], description="What comes in their place.", examples=[[]])


Op = Annotated[SetField | AppendItems | SpliceItems, Field(discriminator="op")]


class Wrote(Order):
    """The writes of a step: `ops` on the fields that changed, or the whole `state`."""

    step: str = STEP
    ops: list[Op] | None = Field(
        None,
        description="One for each field that changed. An append costs what it adds, however long the list is.",
        max_length=500,
        examples=[[{"op": "append", "field": "messages", "items": [{"role": "user", "text": "Pay it."}]}]],
    )
    state: dict[str, Any] | None = Field(
        None, description="Instead of `ops`: the whole new state, with every field.", examples=[None]
    )
    next_step: str | None = Field(
        None,
        description="The step to go on with, if not the next step of the plan; empty: the run is done. The plan must "
        "allow the step to go there.",
        max_length=100,
        examples=[None],
    )
    took: float = TOOK
    notes: list[str] = NOTES


class Save(Wrote):
    """The writes of a step, as the run's next checkpoint."""

    token: int = TOKEN


class SaveAll(ClaimedRequest):
    """The writes of several steps, one after the other: a checkpoint each."""

    checkpoints: list[Wrote] = Field(
        description="The oldest first. All of them are saved, or none.", min_length=1, max_length=100
    )


class Ask(AskedCard):
    """Open a gate of the plan and wait there; the run is released meanwhile."""

    token: int = TOKEN
    step: str = Field(description="The gate's step of the plan.", min_length=1, max_length=100, examples=["review"])
    took: float = TOOK
    notes: list[str] = NOTES
    deferred: bool = Field(
        False,
        description="Whether you disconnect and come back for the outcome; then you are not treated as lost.",
        examples=[False],
    )


class Begin(ClaimedRequest):
    """Begin an effect or an undo: its intent is written, and the grant used."""

    step: str = Field("", description="The effect's step of the plan.", max_length=100, examples=["wire"])
    undoes: int | None = Field(
        None, description="Instead of `step`: the number of the effect to undo.", ge=1, le=2**62, examples=[None]
    )


class Report(ClaimedRequest):
    """The result of an effect that you began."""

    status: Literal["done", "failed", "unknown"] = Field(
        description="done: it happened. failed: it certainly did not. unknown: nobody knows, as after a timeout.",
        examples=["done"],
    )
    writes: dict[str, Any] = Field(
        {}, description="If done: the fields that it writes.", examples=[{"wire_result": {"id": "tx_1"}}]
    )
    error: str = Field("", description="If not done: what went wrong.", max_length=2000, examples=[""])
    retry: bool = RETRY
    next_step: str | None = Field(None, description="As for a checkpoint.", max_length=100, examples=[None])
    took: float = TOOK
    notes: list[str] = NOTES


class FailureBody(ClaimedRequest):
    """A step failed."""

    step: str = STEP
    error: str = ERROR
    retry: bool = RETRY


class RunEnding(ClaimedRequest):
    """End the run: it is done, or it failed for good."""

    status: Literal["completed", "failed"] = Field(description="How it ends.", examples=["completed"])
    reason: str = Field("", description="The reason, in one line.", max_length=300, examples=[""])
