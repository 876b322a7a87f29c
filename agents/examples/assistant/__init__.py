"""The assistant agent: a model works on a task with tools, and a person approves whatever changes anything.

It speaks Chat Completions to the endpoint at `OPENAI_BASE_URL`, so any compatible one will do. A turn's calls are one
gate with an action each, and a person approves, edits, refuses or answers each by itself. Exactly the approved calls
run, and the model is told in words about the others.

1. Listing and reading files in `HOLDPOINT_ASSISTANT_FOLDER` needs no approval. Writing a file and running a command
   always do; fetching an address does unless its host is one of `HOLDPOINT_ASSISTANT_HOSTS`. See `calls`.
2. The undo of a write restores the file, as long as nobody changed it since. A command and a fetched address cannot be
   undone. A write and a fetch may be repeated; about a command that was cut off a person is asked whether it happened.
3. Rules set the risk on the card, never the model (`calls.assess_calls`).
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
    upcast,
)
from agents.examples.nouns import Noun
from checkpoints.values.characters import one_line

from . import conversation, model, tools
from .calls import MULTILINE, TOOLS, Call, assess_calls, describe_tools, title_calls
from .conversation import Feedback, Message, Usage
from .tools import Replaced, Written

TURNS = 60  # of the model on one path, after which a person is asked
FAULTS = 3  # turns in a row of which nothing can be used, after which a person is asked
SAYING = 4_000  # characters of the model's words that a gate shows


class Assistant(Agent):
    """Work on a task with a model and tools: think, look, ask, do, and say what came of it."""

    name = "assistant"
    version = "3"
    team = "Support"
    libraries = ("openai",)

    class State(Noun):
        """What is saved after every step."""

        task: str = Field(title="Task", min_length=1, max_length=50_000, json_schema_extra=MULTILINE)
        folder: str = ""  # in which it works; `begin` writes it
        messages: list[Message] = Field(default_factory=list)
        calls: list[Call] = Field(default_factory=list)  # of the newest turn
        replaced: list[Replaced] = Field(default_factory=list)  # what they would write over
        saying: str = ""  # the model's words of the newest turn
        calling: str = ""  # the id of the call that is about to be made
        result: str = Field("", title="What the assistant is told", max_length=20_000, json_schema_extra=MULTILINE)
        written: Written | None = None
        usage: Usage = Field(default_factory=Usage)
        faults: int = 0  # turns in a row of which nothing could be used
        feedback: list[Feedback] = Field(default_factory=list)  # that the model was not told yet
        decision: dict[str, Any] = Field(default_factory=dict)
        answer: str = ""

    @upcast("2", steps={"trim": "think"})
    @classmethod
    def from_2(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Take over other names, and messages in a form of our own."""
        state["feedback"] = state.get("feedback", [])[state.pop("heard", 0) :]
        state["decision"] = state.get("decision") or {}
        state["replaced"] = state.pop("there", [])
        if written := state.get("written"):
            written["folders"] = written.pop("made")
            del written["mode"]
        for message in state.get("messages", []):
            calls, ref = message.pop("calls"), message.pop("answers")
            message |= {"tool_call_id": ref} if ref else {}
            if calls:
                message["tool_calls"] = [{"id": call.pop("id"), "type": "function", "function": call} for call in calls]
        return state

    @upcast("1", steps={"trim": "think"})
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return cls.from_2(state)

    @classmethod
    def title(cls, state: State) -> str:
        """Return the task's first line."""
        return one_line(state.task.strip().partition("\n")[0], 120) or "A task without words"

    @classmethod
    def meters(cls, state: State) -> list[tuple[str, str, str]]:
        """Tokens, and what they cost where prices are set."""
        return state.usage.figures() if state.usage.turns else []

    @classmethod
    def result(cls, state: State) -> str:
        """Return the model's last answer."""
        return state.answer

    @classmethod
    def lacks(cls) -> str:
        """Say that the key for the model's endpoint is missing, or return "" if it is set."""
        return model.check_setup()

    @classmethod
    def inputs_from(cls, path: Path) -> list[dict[str, Any]]:
        """One task for each .md or .txt file of a folder, by name, or for the one file."""
        tasks = sorted(file for file in path.iterdir() if file.suffix in (".md", ".txt")) if path.is_dir() else [path]
        if not tasks:
            raise AgentError(f"There is no .md or .txt file in {path}.")
        return [{"task": file.read_text()} for file in tasks]

    @step(title="Begin the task", reads_world=True)
    def begin(self, task: str) -> Any:
        """Open the folder and the conversation."""
        words = [("system", conversation.HOW), ("user", task)]
        messages = [{"role": role, "content": content} for role, content in words]
        return Jump("think", {"folder": tools.open_home(), "messages": messages})

    @step(title="Think", writes=["messages", "usage", "calls", "replaced", "saying", "feedback", "faults", "answer"],
          retry=6, backoff=2, timeout=600, loop_guard=TURNS)  # fmt: skip
    def think(self, messages: list[Message], usage: Usage, feedback: list[Feedback], faults: int) -> Any:
        """Ask the model what to do next."""
        recent = conversation.shorten(messages, settings.HOLDPOINT_ASSISTANT_CONTEXT)
        if recent is not messages:
            self.note(f"{len(messages) - len(recent) + 1} messages are left out; the checkpoint before has them.")
        news = conversation.tell_feedback(feedback)
        turn = model.next_turn([*recent, *news], describe_tools(), self.progress)
        more, calls, useless = conversation.read_turn(turn, usage.turns + 1)
        if useless and faults + 1 >= FAULTS:
            raise StepFailed(f"Nothing of the model's last {FAULTS} turns could be used: {useless}")
        self.note(f"The model was asked again: {useless}" if useless else ", ".join(map(str, calls)))
        writes = {
            "messages": Append([*news, *more]) if recent is messages else [*recent, *news, *more],
            "usage": usage.add(turn), "calls": calls, "replaced": [], "saying": turn.text[:SAYING], "feedback": [],
            "faults": faults + 1 if useless else 0,
        }  # fmt: skip
        if useless:
            return Jump("think", writes)
        return writes if calls else Done(writes | {"answer": turn.text})

    @step(title="Look at files", reads_world=True, writes=["messages", "calls", "replaced", "feedback"], timeout=60)
    def look(self, folder: str, calls: list[Call], feedback: list[Feedback]) -> Any:
        """Answer what needs nobody's word, and look at what the rest would write over."""
        tools.check_home(folder, StepFailed)
        # All of the turn's calls were refused, and the run was sent back here.
        no = next((words for words in feedback if words.gate and not words.action), None)
        answers, asking, replaced = list[Message](), list[Call](), list[Replaced]()
        for call in calls:
            try:
                if not call.asks:
                    answers.append(conversation.tell(call.ref, tools.look_up(folder, call.tool, call.arguments)))
                elif no is not None:
                    answers.append(conversation.tell_refusal(call, no.by, no.text))
                else:
                    if call.tool == "write_file":
                        replaced.append(tools.look_before(folder, call.id, call.arguments["path"]))
                    asking.append(call)
            except OSError as refused:
                answers.append(conversation.tell(call.ref, f"{refused} Nothing was done."))
        writes = {"messages": Append(answers), "calls": asking, "replaced": replaced}
        if no is not None:
            return Jump("think", writes | {"feedback": []})
        return writes if asking else Jump("think", writes)

    @gate(title="Review the calls", policy="assistant", allows=["write_file", "run_command", "http_get"],
          edits=["calls"], on_reject="look", on_skip="think", uses=[assess_calls])  # fmt: skip
    def review(self, folder: str, calls: list[Call], replaced: list[Replaced], saying: str) -> Card | None:
        """Ask about every call of the turn; each gets its own verdict."""
        if not calls:
            return None
        level, reasons = assess_calls(calls, replaced)
        return Card(
            title=title_calls(calls),
            summary=saying,
            resource=folder,
            risk=level,
            reasons=reasons,
            actions=[
                Action(
                    id=call.id,
                    title=TOOLS[call.tool].title,
                    tool=call.tool,
                    effect=call.tool,
                    pointer=f"/calls/{number}/arguments",
                    schema=TOOLS[call.tool].takes.model_json_schema(mode="serialization"),
                    pinned=[f"/{TOOLS[call.tool].pinned}"],
                    verdicts=["approve", "edit", "reject", "respond"],
                )
                for number, call in enumerate(calls)
            ],
            quotes=[
                Quote(label=file.path, role="as it is now, to be written over", pointer=f"/replaced/{number}/text")
                for number, file in enumerate(replaced)
                if file.text
            ],
        )

    answers_within = 120.0

    def answer(self, question: ReviewerQuestion, messages: list[Message], calls: list[Call]) -> str:
        """Ask the model, with the conversation so far. It gets no tools, and nothing of it is kept."""
        return model.next_turn([*messages, *conversation.put_question(question, calls)], [], self.progress).text

    @step(title="Pick the next call", writes=["messages", "calls", "replaced", "calling", "result", "feedback"])
    def pick(self, calls: list[Call], calling: str, result: str, decision: dict[str, Any]) -> Any:
        """Tell the model what became of one call, and take the next, until there is none."""
        at = next((at for at, call in enumerate(calls) if call.id == calling), -1)
        answers = [conversation.tell_outcome(calls[at], result, decision)] if at >= 0 else []
        writes: dict[str, Any] = {"messages": Append(answers), "calling": "", "result": ""}
        if at + 1 == len(calls):
            return Jump("think", writes | {"calls": [], "replaced": [], "feedback": []})
        coming = calls[at + 1]
        writes["calling"] = coming.id
        if coming.tool == "write_file":
            return Jump("write_file", writes)
        return Jump("run_command", writes) if coming.tool == "run_command" else Jump("http_get", writes)

    @effect(title="Write a file", undo="put_back", idempotent=True, action="calling", responds="result", then="pick",
            timeout=60)  # fmt: skip
    def write_file(
        self, folder: str, calls: list[Call], replaced: list[Replaced], calling: str, *, key: str
    ) -> dict[str, Any]:
        """Write a file, over what the reviewer was shown."""
        tools.check_home(folder, EffectFailed)
        arguments = _find(calls, calling)
        path, text = arguments["path"], arguments["content"]
        shown = next((old.digest for old in replaced if (old.call, old.path) == (calling, path)), None)
        try:
            was = self.once("was", tools.keep_file, folder, path)  # before a crash could make it what is new
            written = tools.write_file(folder, path, text, was=was, shown=shown, key=key)
        except OSError as refused:
            return {"written": None, "result": f"{refused} Nothing was written."}
        return {"written": written, "result": f"{path} is written: {len(text.encode()):,} bytes."}

    @undo(idempotent=True)
    def put_back(self, folder: str, written: Written | None, *, key: str) -> None:
        """Put back what the file held, or take the file away; as often as it is asked."""
        tools.check_home(folder, EffectFailed)
        if written is None:
            return
        try:
            tools.put_back(folder, written, key=key)
        except OSError as refused:
            raise EffectFailed(str(refused)) from refused

    @effect(title="Run a command", irreversible=True, action="calling", responds="result", then="pick",
            timeout=150)  # fmt: skip
    def run_command(self, folder: str, calls: list[Call], calling: str, *, key: str) -> dict[str, Any]:
        """Run a command, and tell what it said. Of one that was cut off nobody knows what it did."""
        tools.check_home(folder, EffectFailed)
        return {"result": tools.run_command(folder=folder, **_find(calls, calling))}

    @effect(title="Fetch from the web", irreversible=True, idempotent=True, action="calling", responds="result",
            then="pick", timeout=60)  # fmt: skip
    def http_get(self, calls: list[Call], calling: str, *, key: str) -> dict[str, Any]:
        """Fetch an address, and tell what came back."""
        return {"result": tools.fetch_address(**_find(calls, calling))}


def _find(calls: list[Call], id: str) -> dict[str, Any]:
    """Return the arguments of the call that is about to be made."""
    return next(call.arguments for call in calls if call.id == id)
