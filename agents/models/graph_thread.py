"""The threads of LangGraph graphs: which run keeps each, the writes pending at its checkpoints, and its invocations."""

from __future__ import annotations

from uuid import UUID

from django.db import models

NO_MASK = UUID(int=0)


class GraphThread(models.Model):
    """One namespace of a thread, and the run that keeps it. The run's `thread` is the thread's id."""

    run = models.OneToOneField("checkpoints.Run", on_delete=models.PROTECT, primary_key=True, related_name="graph")
    namespace = models.TextField(blank=True)  # "" for the graph itself, "node:task" for a subgraph
    # LangGraph's id of a checkpoint is the store's, except for these bits: a copy of a thread has the same ids as the
    # thread, and the store's are unique.
    mask = models.UUIDField(default=NO_MASK)

    def __str__(self) -> str:
        return f"{self.namespace or 'graph'} in run {self.run_id}"


class ThreadWrite(models.Model):
    """Writes of a task before its step's checkpoint was saved: the ordinary ones of one call, or a special one."""

    pk = models.CompositePrimaryKey("run_id", "checkpoint", "task", "number")
    # No database constraint on hot rows. The checkpoint may come after its writes: LangGraph saves in the background.
    run = models.ForeignKey(
        "checkpoints.Run", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    checkpoint = models.UUIDField()
    task = models.TextField()
    number = models.IntegerField()  # LangGraph's of a special write; 0 for the ordinary ones
    path = models.TextField(blank=True)  # of the task in its graph
    codec = models.SmallIntegerField()  # how `value` is stored: see checkpoints.layout.payloads
    value = models.BinaryField()  # canonical JSON: [[number, channel, value], …]
    digest = models.BinaryField()  # of the value and of its place

    def __str__(self) -> str:
        return f"write {self.number} of task {self.task} (run {self.run_id})"


class ThreadCall(models.Model):
    """A `run_id` that LangGraph gave to an invocation, and a run of which it wrote checkpoints."""

    pk = models.CompositePrimaryKey("name", "run_id")
    name = models.TextField()
    run = models.ForeignKey("checkpoints.Run", on_delete=models.PROTECT, db_index=False, related_name="+")

    def __str__(self) -> str:
        return f"invocation {self.name} of run {self.run_id}"
