"""Bodies and answers of the addresses of threads."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from agents.api.programs.starting import NAME
from agents.api.protocol import ApiSchema
from agents.api.runs.moves import Order

AGENT = Field(
    "",
    description="The agent's name; empty with a token for one agent.",
    pattern=f"{NAME}|^$",
    examples=["assistant"],
)
TEAM = Field("", description="The team of the threads; empty if there is only one.", max_length=150, examples=[""])
THREAD = Field(description="The thread's id.", min_length=1, max_length=200, examples=["chat-1207"])
NAMESPACE = Field("", description="The namespace: empty for the graph itself.", max_length=2000, examples=[""])
ID = Field(
    description="The checkpoint's id, a UUID.", max_length=100, examples=["1f0b6c1e-0f5e-6b7a-8001-0a1b2c3d4e5f"]
)
PARENT = "1f0b6c1e-0f4d-6a12-8000-0a1b2c3d4e5f"
POSITION = {
    "v": 4, "ts": "2026-11-02T09:30:00+00:00", "channel_versions": {"answer": 2}, "versions_seen": {},
    "metadata": {"source": "loop", "step": 1, "parents": {}},
}  # fmt: skip
STATE = {"answer": "Paid.", "langgraph": POSITION}
Known = tuple[int, str | None]
SEEN = "What was read or answered last of this thread: the claim's token, and the head's id."


class ThreadOrder(Order):
    """An order to the threads of an agent."""

    agent: str = AGENT
    team: str = TEAM


class PutCheckpoint(ThreadOrder):
    """Save a checkpoint of a graph after its parent. Members that name fields change the parent's state."""

    example: ClassVar = {
        "parent": PARENT, "set": STATE, "append": {"messages": ["Pay it."]}, "drop": [], "whole": False,
        "invocation": "",
    }  # fmt: skip

    thread: str = THREAD
    namespace: str = NAMESPACE
    id: str = ID
    parent: str | None = Field(None, max_length=100)
    """The checkpoint that it follows; null: it begins the thread."""  # fmt: skip
    set: dict[str, Any] = {}
    """Fields with their new values."""
    append: dict[str, list[Any]] = {}
    """Lists with the items at their end."""
    drop: list[str] = Field([], max_length=1000)
    """Fields that the state has no more."""
    whole: bool = False
    """Whether `set` is the whole state."""
    invocation: str = Field("", max_length=200)
    """LangGraph's `run_id` of the invocation, if it has one."""
    seen: Known | None = Field(
        None, description=f"{SEEN} If it is something else by now, 409 `thread_moved`; null: whatever is there.",
        examples=[[3, PARENT]],
    )  # fmt: skip


class Saved(ApiSchema):
    """A checkpoint was saved."""

    example: ClassVar = {"seen": [3, PARENT]}

    seen: Known
    """What to send with the next one."""


class PendingWrite(Order):
    """A write of a task to a channel."""

    example: ClassVar = {"number": 0, "channel": "answer", "value": "Paid."}

    number: int = Field(ge=-100, le=10_000)
    """Its number among the task's writes; below 0 for a special channel."""  # fmt: skip
    channel: str = Field(max_length=1000)
    """The channel."""
    value: Any = None
    """The value."""


class PutWrites(ThreadOrder):
    """Keep what a task wrote before the next checkpoint is saved."""

    example: ClassVar = {"task": "6c1b8b7e", "path": "~__pregel_pull"}

    thread: str = THREAD
    namespace: str = NAMESPACE
    id: str = ID
    task: str = Field(min_length=1, max_length=200)
    """The task's id."""
    path: str = Field("", max_length=4000)
    """The task's path in its graph."""
    writes: list[PendingWrite] = Field(min_length=1, max_length=10_000)
    """The writes."""


class Deletion(ThreadOrder):
    """Remove a thread's checkpoints, or those that invocations saved."""

    example: ClassVar = {"thread": "chat-1207", "invocations": []}

    thread: str = Field("", max_length=200)
    """The thread; empty: `invocations`."""
    invocations: list[str] = Field([], max_length=1000)
    """LangGraph's `run_id`s; empty: `thread`."""


class ThreadCopy(ThreadOrder):
    """Copy a thread with its checkpoints and writes."""

    example: ClassVar = {"to": "chat-1208"}

    thread: str = THREAD
    to: str = Field(min_length=1, max_length=200)
    """The thread to copy to, without checkpoints."""  # fmt: skip


class ThreadPrune(ThreadOrder):
    """Keep the newest checkpoint of each namespace, and what it is rebuilt from."""

    thread: str = THREAD


class ThreadDone(ApiSchema):
    """It was done."""

    example: ClassVar = {"done": True}

    done: bool = True
    """Always true."""


class ReadWrite(ApiSchema):
    """A pending write."""

    example: ClassVar = {"task": "6c1b8b7e", "channel": "answer", "value": "Paid."}

    task: str
    """The task's id."""
    channel: str
    """The channel."""
    value: Any
    """The value."""


class ReadCheckpoint(ApiSchema):
    """A checkpoint of a graph."""

    example: ClassVar = {
        "thread": "chat-1207", "namespace": "", "id": PARENT, "parent": None, "fields": STATE, "edited": [],
    }  # fmt: skip

    thread: str
    """The thread's id."""
    namespace: str
    """The namespace."""
    id: str
    """The checkpoint's id."""
    parent: str | None
    """The id of its parent; null: it has none."""
    fields: dict[str, Any]
    """The state: each channel under its name, and in `langgraph` the versions and the metadata."""
    writes: list[ReadWrite]
    """The writes pending at it, in LangGraph's order."""
    edited: list[str]
    """The fields that a person has changed since the graph saved them."""


class ReadThread(ApiSchema):
    """The checkpoint that was asked for; null where there is none."""

    example: ClassVar = {"seen": [3, PARENT]}

    found: ReadCheckpoint | None
    seen: Known
    """What to send with a put that follows."""


class CheckpointList(ApiSchema):
    """Checkpoints, the newest first."""

    example: ClassVar = {"next": None}

    items: list[ReadCheckpoint]
    next: str | None
    """The `cursor` of the next page; null at the end."""


class ReadHistory(ApiSchema):
    """The writes and the value from which a DeltaChannel is rebuilt."""

    example: ClassVar = {"stored": True, "value": []}

    writes: list[ReadWrite]
    """The writes to the channel, oldest first."""
    stored: bool
    """Whether a stored value comes before them."""
    value: Any
    """That value."""


class ReadHistories(ApiSchema):
    """The histories by channel."""

    channels: dict[str, ReadHistory]
