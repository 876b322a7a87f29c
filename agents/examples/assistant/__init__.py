"""The assistant agent: a model works on a task with tools, and a person approves whatever changes anything.

It speaks Chat Completions to the endpoint at `OPENAI_BASE_URL`, so any compatible one will do. A turn's calls are one
gate with an action each, and a person approves, edits, refuses or answers each by itself. Exactly the approved calls
run, and the model is told in words about the others.

1. Listing and reading files in `HOLDPOINT_ASSISTANT_FOLDER` needs no approval. Writing a file and running a command
   always do; fetching an address does unless its host is one of `HOLDPOINT_ASSISTANT_HOSTS`. See `tools`.
2. The undo of a write restores the file, as long as nobody changed it since. A command and a fetched address cannot be
   undone. A write and a fetch may be repeated; about a command that was cut off a person is asked whether it happened.
3. Rules set the risk on the card, never the model.
4. The model's text is shown live while it is generated, and kept only once its turn is complete.
5. A conversation that outgrows `HOLDPOINT_ASSISTANT_CONTEXT` loses its oldest turns; earlier checkpoints hold them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from pydantic import Field

from agents import (
    Action,
    Agent,
    AgentError,
    Append,
    Card,
    Done,
    EffectFailed,
    Jump,
    Quote,
    ReviewerQuestion,
    StepFailed,
    effect,
    gate,
    step,
    undo,
)
from agents.examples.nouns import Noun, keep_state

from . import commands, files, model, tools, turns, web, words
from .state import AnyCall, Decision, Feedback, HttpGet, Message, RunCommand, There, Usage, WriteFile, Written
from .tools import TOOLS

TURNS = 60  # of the model on one path, after which a person is asked
FAULTS = 3  # turns in a row of which nothing can be used, after which a person is asked
SHOWN = 8_000  # characters of a file that is to be written over
SAYING = 4_000  # characters of the model's words that a gate shows
VERDICTS = ["approve", "edit", "reject", "respond"]


class Assistant(Agent):
    """Work on a task with a model and tools: think, look, ask, do, and say what came of it."""

    name = "assistant"
    version = "2"
    team = "Support"
    from_1 = keep_state("1")
    libraries = ("openai",)

    class State(Noun):
        """What is saved after every step."""

        task: str = Field(title="Task", min_length=1, max_length=50_000, json_schema_extra={"format": "multiline"})
        folder: str = ""  # in which it works; `begin` writes it
        messages: list[Message] = Field(default_factory=list)
        calls: list[AnyCall] = Field(default_factory=list)  # of the newest turn
        there: list[There] = Field(default_factory=list)  # what they would write over
        saying: str = ""  # the model's words of the newest turn
        calling: str = ""  # the id of the call that is about to be made
        result: str = Field(default="", title="What the assistant is told", max_length=20_000,
                            json_schema_extra={"format": "multiline"})  # fmt: skip
        written: Written | None = None
        usage: Usage = Field(default_factory=Usage)
        faults: int = 0  # turns in a row of which nothing could be used
        feedback: list[Feedback] = Field(default_factory=list)
        heard: int = 0  # how many of them the model was told
        decision: Decision | None = None
        answer: str = ""

    @classmethod
    def title(cls, state: State) -> str:
        """Return the task's first line."""
        return words.title_of(state.task)

    @classmethod
    def meters(cls, state: State) -> list[tuple[str, str, str]]:
        """Tokens, and what they cost where prices are set."""
        return words.figures(state.usage) if state.usage.turns else []

    @classmethod
    def result(cls, state: State) -> str:
        """Return the model's last answer."""
        return state.answer

    @classmethod
    def lacks(cls) -> str:
        """Say that the key for the model's endpoint is missing, or return "" if it is set."""
        return model.lacking()

    @classmethod
    def inputs_from(cls, path: Path) -> list[dict[str, Any]]:
        """One task for each .md or .txt file of a folder, by name, or for the one file."""
        tasks = sorted(each for each in path.iterdir() if each.suffix in (".md", ".txt")) if path.is_dir() else [path]
        if not tasks:
            raise AgentError(f"There is no .md or .txt file in {path}.")
        return [{"task": file.read_text()} for file in tasks]

    @step(title="Begin the task", reads_world=True)
    def begin(self, task: str) -> Any:
        """Open the folder and the conversation."""
        told = [Message(role="system", content=words.HOW), Message(role="user", content=task)]
        return Jump("think", {"folder": files.home(), "messages": told})

    @step(title="Shorten the conversation", writes=["messages"])
    def trim(self, messages: list[Message]) -> Any:
        """Leave out the oldest turns."""
        cut = turns.cut_oldest(messages, settings.HOLDPOINT_ASSISTANT_CONTEXT)
        if cut is not None:
            self.note(
                f"{cut.delete} of {len(messages)} messages are left out from here on; the checkpoint before has them."
            )
        return Jump("think", {"messages": cut or Append([])})

    @step(title="Think",
          writes=["messages", "usage", "calls", "there", "calling", "saying", "heard", "faults", "answer"],
          retry=6, backoff=2, timeout=600, loop_guard=TURNS)  # fmt: skip
    def think(self, messages: list[Message], usage: Usage, feedback: list[Feedback], heard: int, faults: int) -> Any:
        """Ask the model what to do next."""
        if turns.cut_oldest(messages, settings.HOLDPOINT_ASSISTANT_CONTEXT):
            return Jump("trim")
        said = words.spoken(feedback[heard:])
        turn = model.turn([*messages, *said], tools.list_tools(), self.progress)
        taken = turns.read_turn(turn, usage.turns + 1)
        if taken.useless and faults + 1 >= FAULTS:
            raise StepFailed(f"Nothing of the model's last {FAULTS} turns could be used: {taken.why}")
        writes = {
            "messages": Append([*said, *taken.messages]), "usage": turns.count_usage(usage, turn),
            "calls": taken.calls, "there": [], "calling": "", "saying": turn.text[:SAYING], "heard": len(feedback),
            "faults": faults + 1 if taken.useless else 0,
        }  # fmt: skip
        self.note(taken.note)
        if taken.useless:
            return Jump("think", writes)
        return writes if taken.calls else Done(writes | {"answer": taken.answer})

    @step(
        title="Look at files",
        reads_world=True,
        writes=["messages", "calls", "there", "heard"],
        timeout=TOOLS["read_file"].seconds,
    )
    def look(self, folder: str, calls: list[AnyCall], feedback: list[Feedback], heard: int) -> Any:
        """Answer what needs nobody's word, and look at what the rest would write over."""
        files.check(folder, StepFailed)
        no = next((said for said in feedback[heard:] if said.gate and not said.action), None)
        told, asking, there = list[Message](), list[AnyCall](), list[There]()
        for call in calls:
            try:
                if not call.asks:
                    told.append(words.gave(call, tools.perform(folder, call)))
                elif no is not None:  # all of the turn's calls were refused, and the run was sent back here
                    told.append(words.refused(call, no))
                else:
                    there += tools.look_before(folder, call, shown=SHOWN)
                    asking.append(call)
            except files.FileRefused as refused:
                told.append(words.gave(call, f"{refused} Nothing was done."))
        writes = {"messages": Append(told), "calls": asking, "there": there}
        if no is not None:
            return Jump("think", writes | {"heard": len(feedback)})
        return writes if asking else Jump("think", writes)

    @gate(title="Review the calls",
          policy="assistant", allows=["write_file", "run_command", "http_get"], edits=["calls"], on_reject="look",
          on_skip="think", uses=[words.assess])  # fmt: skip
    def review(self, folder: str, calls: list[AnyCall], there: list[There], saying: str) -> Card | None:
        """Ask about every call of the turn; each gets its own verdict."""
        risk, reasons = words.assess(calls, there)
        if not calls:
            return None
        return Card(
            title=words.heading(calls),
            summary=saying,
            resource=folder,
            risk=risk,
            reasons=reasons,
            actions=[
                Action(
                    id=call.id,
                    title=TOOLS[call.tool].title,
                    tool=call.tool,
                    effect=call.tool,
                    pointer=f"/calls/{number}/arguments",
                    schema=TOOLS[call.tool].takes.model_json_schema(mode="serialization"),
                    pinned=TOOLS[call.tool].pinned,
                    verdicts=VERDICTS,
                )
                for number, call in enumerate(calls)
            ],
            quotes=[
                Quote(label=each.path, role="as it is now, to be written over", pointer=f"/there/{number}/text")
                for number, each in enumerate(there)
                if each.text
            ],
        )

    answers_within = 120.0

    def answer(self, question: ReviewerQuestion, messages: list[Message], calls: list[AnyCall]) -> str:
        """Ask the model, with the conversation so far. It gets no tools, and nothing of it is kept."""
        asked = words.asked(question, calls)
        said = model.turn([*messages, *asked], [], self.progress)
        return said.text or said.refusal

    @step(title="Pick the next call", writes=["messages", "calls", "there", "calling", "result", "heard"])
    def pick(
        self, calls: list[AnyCall], calling: str, result: str, decision: Decision | None, feedback: list[Feedback]
    ) -> Any:
        """Tell the model what became of one call, and take the next, until there is none."""
        ids = [call.id for call in calls]
        at = ids.index(calling) if calling in ids else -1
        told = [words.answered(calls[at], result, decision, feedback)] if at >= 0 else []
        if at + 1 == len(calls):
            writes = {"messages": Append(told), "calls": [], "there": [], "calling": "", "result": ""}
            return Jump("think", writes | {"heard": len(feedback)})
        coming = calls[at + 1]
        on = {"messages": Append(told), "calling": coming.id, "result": ""}
        if coming.tool == "write_file":
            return Jump("write_file", on)
        return Jump("run_command", on) if coming.tool == "run_command" else Jump("http_get", on)

    @effect(title="Write a file",
            undo=TOOLS["write_file"].reverses, idempotent=True, action="calling", responds="result", then="pick",
            timeout=TOOLS["write_file"].seconds)  # fmt: skip
    def write_file(
        self, folder: str, calls: list[AnyCall], there: list[There], calling: str, *, key: str
    ) -> dict[str, Any]:
        """Write a file, over what the reviewer was shown."""
        files.check(folder, EffectFailed)
        arguments = tools.find_call(calls, calling, WriteFile)
        path, text = arguments.path, arguments.content
        try:
            was = self.once("was", files.keep, folder, path)  # before a crash could make it what is new
            shown = next((each for each in there if (each.call, each.path) == (calling, path)), None)
            if shown is not None and shown.digest != files.digest_of(was):
                changed = f"{path} was changed after a person had looked at it. Nothing was written; read it again."
                return {"written": None, "result": changed}
            written = files.write(folder, path, text, was=was, key=key)
        except files.FileRefused as refused:
            return {"written": None, "result": f"{refused} Nothing was written."}
        return {"written": written, "result": f"{path} is written: {len(text.encode()):,} bytes."}

    @undo(idempotent=True)
    def put_back(self, folder: str, written: Written | None, *, key: str) -> None:
        """Put back what the file held, or take the file away; as often as it is asked."""
        files.check(folder, EffectFailed)
        try:
            if written is not None:
                files.put_back(folder, written, key=key)
        except files.FileRefused as refused:
            raise EffectFailed(str(refused)) from refused

    @effect(title="Run a command",
            irreversible=not TOOLS["run_command"].reverses, action="calling", responds="result", then="pick",
            timeout=TOOLS["run_command"].seconds)  # fmt: skip
    def run_command(self, folder: str, calls: list[AnyCall], calling: str, *, key: str) -> dict[str, Any]:
        """Run a command, and tell what it said. Of one that was cut off nobody knows what it did."""
        files.check(folder, EffectFailed)
        arguments = tools.find_call(calls, calling, RunCommand)
        return {"result": commands.run(arguments.argv, folder=folder, seconds=arguments.seconds)}

    @effect(title="Fetch from the web",
            irreversible=not TOOLS["http_get"].reverses, idempotent=True, action="calling", responds="result",
            then="pick", timeout=TOOLS["http_get"].seconds)  # fmt: skip
    def http_get(self, calls: list[AnyCall], calling: str, *, key: str) -> dict[str, Any]:
        """Fetch an address, and tell what came back."""
        return {"result": web.get(tools.find_call(calls, calling, HttpGet).url)}
