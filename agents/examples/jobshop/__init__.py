"""The jobshop agent: it schedules a job shop, and when a machine breaks down it repairs the schedule in two ways.

1. Two steps plan: `sequence` orders the jobs on each machine, by a dispatching rule, and `time` sets their times. Their
   output is validated by code that shares nothing with them (`check`).
2. A machine breaks down: the input says which, from when and until when. Values that are missing are derived, so that
   every run has a breakdown: the machine with the most work, at a quarter of the schedule, for a tenth of it.
3. `repair_locally` shifts the operations that must wait and swaps neighbours around them (`local`); `solve_globally`
   plans everything anew that has not begun (`solver`). Both are validated as the first schedule was.
4. A person sees both as charts, with what each moves, when it ends and how long it took to find, and chooses one or
   sends both back: "keep job 3" holds that job to its planned times.
5. The chosen one is published on the shop floor's board (`floor`), from where it can be withdrawn.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from agents import Agent, AgentError, Card, StepFailed, effect, gate, step, undo, upcast, validator
from agents.examples.nouns import Noun
from approvals.english import count_of

from . import check, floor, local, planning, schedules, solver, words
from . import feedback as reviewers
from .breakdown import Situation
from .reading import read_shop, write_shop
from .state import (
    Breakdown,
    Chosen,
    Decision,
    Downtime,
    Effort,
    Feedback,
    Instance,
    Published,
    Repair,
    Schedule,
    Source,
)


class JobShop(Agent):
    """Schedule a job shop, mend the schedule after a breakdown in two ways, ask which, and publish it."""

    name = "jobshop"
    version = "2"
    team = "Planning"
    libraries = ("ortools",)

    Config = Effort

    class State(Noun):
        """What is saved after every step."""

        source: Source
        breakdown: Breakdown = Field(default_factory=Breakdown)
        instance: Instance | None = None
        orders: list[list[int]] = Field(default_factory=list)  # by machine, its jobs in order
        plan: Schedule | None = None
        downtime: Downtime | None = None
        local_repair: Repair | None = None
        global_plan: Repair | None = None
        feedback: list[Feedback] = Field(default_factory=list)
        decision: Decision | None = None
        chosen: Chosen = ""
        published: Published | None = None

        @field_validator("breakdown")
        @classmethod
        def breaks_a_machine_of_the_shop(cls, breakdown: Breakdown, info: ValidationInfo) -> Breakdown:
            source = info.data.get("source")
            machines = read_shop(source.text).machines if source else 0
            if source and breakdown.machine is not None and breakdown.machine >= machines:
                raise ValueError(f"there is no machine {breakdown.machine}; they count from 0 to {machines - 1}")
            return breakdown

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Version 1 read other forms of a shop too; what it read is in `instance`."""
        if shop := state.get("instance"):
            state["source"]["text"] = write_shop(shop["jobs"], shop["machines"])
        return state

    @classmethod
    def title(cls, state: State) -> str:
        """Return the shop's name and size."""
        shop = read_shop(state.source.text)
        return f"{state.source.name}: {len(shop.jobs)} jobs on {shop.machines} machines"

    @classmethod
    def inputs_from(cls, path: Path) -> list[dict[str, Any]]:
        """One input for each file of a folder, by name, or for the one file."""
        files = sorted(filter(Path.is_file, path.glob("[!.]*"))) if path.is_dir() else [path]
        if not files:
            raise AgentError(f"There is no file in {path}.")
        try:
            return [{"source": Source.read(file).model_dump(mode="json")} for file in files]
        except (OSError, ValidationError) as error:
            raise AgentError(f"{path} is no job shop: {error}") from error

    @step(title="Read the shop's orders", uses=[read_shop])
    def read_shop(self, source: Source) -> dict[str, Any]:
        """Read the shop from its file's text."""
        shop = read_shop(source.text)
        return {"instance": Instance(machines=shop.machines, jobs=shop.jobs)}

    @step(title="Put the jobs in order", uses=[planning.sequenced])
    def sequence(self, instance: Instance, feedback: list[Feedback]) -> dict[str, Any]:
        """Say who comes next on each machine; by another rule each time that the schedule was refused."""
        refused = reviewers.count_refusals(feedback, "check_plan")
        rule = planning.rule_after(self.config.rule, refused)
        self.note(f"Rule: {rule}.")
        return {"orders": planning.sequenced(instance.plant, rule)}

    @step(title="Set the times", uses=[planning.timed], validators=["check_plan"], rings=1)
    def set_times(self, instance: Instance, orders: list[list[int]]) -> dict[str, Any]:
        """Say when each operation starts: as early as the orders let it."""
        plant = instance.plant
        try:
            starts = planning.timed(plant, orders)
        except planning.OrdersRefused as error:
            raise StepFailed(str(error)) from error
        plan = schedules.planned(plant, starts)
        self.note(f"The schedule ends at {plan.makespan:,}.")
        return {"plan": plan}

    @validator
    def check_plan(self, instance: Instance, plan: Schedule) -> list[str] | None:
        """The first schedule keeps every rule of the shop."""
        return check.find_faults(instance.jobs, plan.operations) or None

    @step(title="Place the breakdown", uses=[schedules.derived])
    def break_down(self, instance: Instance, plan: Schedule, breakdown: Breakdown) -> dict[str, Any]:
        """A machine stops: as the input says, and where it does not, as the schedule suggests."""
        downtime = schedules.derived(breakdown, instance.plant, plan)
        self.note(f"Machine {downtime.machine} stops at {downtime.since} and is back at {downtime.until}.")
        return {"downtime": downtime}

    @step(
        title="Repair the schedule locally",
        uses=[Situation, local.repaired, local.timed],
        validators=["check_local"],
    )
    def repair_locally(
        self, instance: Instance, plan: Schedule, downtime: Downtime, feedback: list[Feedback]
    ) -> dict[str, Any]:
        """Shift what must wait, and swap neighbours around it; after a refusal only shift."""
        began = time.monotonic()
        now = schedules.situation(instance, plan, downtime, feedback)
        limit = 0 if reviewers.count_refusals(feedback, "check_local") else self.config.swaps
        found = local.repaired(now, radius=self.config.radius, limit=limit)
        swaps = count_of(found.swaps, "swap")
        how = f"The local repair shifts what must wait and makes {swaps}, of {found.tried:,} that it tried."
        made = schedules.repair(now, found.starts, seconds=time.monotonic() - began, how=how)
        self.note(f"{how} It ends at {made.makespan:,}.")
        return {"local_repair": made}

    @validator
    def check_local(
        self, instance: Instance, plan: Schedule, downtime: Downtime, local_repair: Repair
    ) -> list[str] | None:
        """The local repair keeps every rule of the shop, the machine's standstill and what has begun."""
        return _faults(instance, plan, downtime, local_repair)

    @step(title="Solve the schedule anew", uses=[Situation, solver.solved], validators=["check_global"])
    def solve_globally(
        self, instance: Instance, plan: Schedule, downtime: Downtime, feedback: list[Feedback]
    ) -> dict[str, Any]:
        """Plan everything anew that has not begun."""
        solver.load()
        began = time.monotonic()
        now = schedules.situation(instance, plan, downtime, feedback)
        found = solver.solved(now, seconds=self.config.seconds, workers=self.config.workers)
        proof = "and nothing could end sooner" if found.proven else f"and nothing can end before {found.bound:,}"
        how = f"The global plan sets {count_of(len(now.free), 'operation')} anew, {proof}."
        made = schedules.repair(now, found.starts, seconds=time.monotonic() - began, how=how)
        self.note(f"{how} It ends at {made.makespan:,}.")
        return {"global_plan": made}

    @validator
    def check_global(
        self, instance: Instance, plan: Schedule, downtime: Downtime, global_plan: Repair
    ) -> list[str] | None:
        """The global plan keeps every rule of the shop, the machine's standstill and what has begun."""
        return _faults(instance, plan, downtime, global_plan)

    @gate(title="Choose a schedule", policy="schedules", allows=["dispatch"], on_reject="repair_locally")
    def choose(
        self,
        source: Source,
        instance: Instance,
        plan: Schedule,
        downtime: Downtime,
        local_repair: Repair,
        global_plan: Repair,
        feedback: list[Feedback],
    ) -> Card:
        """Ask which of the two goes to the shop floor."""
        now = schedules.situation(instance, plan, downtime, feedback)
        kept, unread = reviewers.read_feedback(feedback, len(instance.jobs))
        charts, question = words.compare(plan, local_repair, global_plan)
        return Card(
            title=f"Machine {downtime.machine} is down: choose how {source.name} goes on",
            summary=words.summarise(downtime, plan, local_repair, global_plan, kept=sorted(kept)),
            resource=f"{source.name}, {count_of(instance.size, 'operation')}",
            risk="medium",
            reasons=words.list_reasons(
                plan,
                local_repair,
                global_plan,
                hit=len(now.hit),
                broken=schedules.displaced(now),
                unread=unread,
            ),
            charts=charts,
            question=question,
            quotes=words.quote_feedback(feedback),
        )

    @step(title="Take the choice")
    def take_choice(self, decision: Decision | None) -> dict[str, Any]:
        """Take down what was chosen."""
        choice = (decision.answer or {}).get("choice", "") if decision else ""
        if choice not in ("local", "global"):
            raise StepFailed("Nobody chose between the two schedules.")
        return {"chosen": choice}

    @effect(title="Send the schedule to the shop floor", undo="withdraw", idempotent=True, readable="on_the_board")
    def dispatch(
        self, source: Source, local_repair: Repair, global_plan: Repair, chosen: Chosen, *, key: str
    ) -> dict[str, Any]:
        """Publish the chosen schedule on the shop floor's board."""
        schedule = local_repair if chosen == "local" else global_plan
        published = floor.publish(source.name, schedule, key)
        self.note(f"Published under the key {key[:8]}; the schedule ends at {schedule.makespan:,}.")
        return {"published": published}

    def on_the_board(self, *, key: str) -> dict[str, Any] | None:
        """Return what was published under a key, None if nothing was."""
        published = floor.find(key)
        return {"published": published} if published else None

    @undo(idempotent=True)
    def withdraw(self, published: Published | None) -> None:
        """Take the schedule off the board."""
        if published:
            floor.withdraw(published.key)


def _faults(instance: Instance, plan: Schedule, downtime: Downtime, repair: Repair) -> list[str] | None:
    stop = (downtime.machine, downtime.since, downtime.until)
    return check.find_faults(instance.jobs, repair.operations, stop=stop, before=plan.operations) or None
