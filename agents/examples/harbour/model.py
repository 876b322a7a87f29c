"""In the place of a language model: its next turn follows from the conversation, so that a retry says the same.

It reads the request for a vessel, a length and a date, delegates the tides, looks for a berth, books it and writes to
the master in one turn, and sums up what its tools told it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

Calls = Sequence[tuple[str, dict[str, Any]]]


class ScriptedModel(BaseChatModel):
    """A model that follows a script. `tides`: it asks its subagent for the tides first."""

    tides: bool = True

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        """Return itself."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        text, calls = _turn(messages, tides=self.tides)
        made = [
            {"name": name, "args": arguments, "id": f"call-{len(messages)}-{at}", "type": "tool_call"}
            for at, (name, arguments) in enumerate(calls)
        ]
        message = AIMessage(content=text, tool_calls=made, id=f"turn-{len(messages)}")
        return ChatResult(generations=[ChatGeneration(message=message)])


def _turn(messages: Sequence[BaseMessage], *, tides: bool) -> tuple[str, Calls]:
    """Return the model's words and calls after these messages."""
    request = next((str(message.content) for message in messages if isinstance(message, HumanMessage)), "")
    results = [message for message in messages if isinstance(message, ToolMessage)]
    named = [result.name for result in results]
    vessel, length, date = _read(request)
    if request.startswith("Tides on "):
        date = request.removeprefix("Tides on ")
        return (str(results[-1].content), ()) if results else ("", [("tide_table", {"date": date})])
    if tides and "task" not in named:
        asked = {"description": f"Tides on {date}", "subagent_type": "tides"}
        return "First the tides.", [("task", asked)]
    if "free_berths" not in named:
        return "", [("free_berths", {"length": length, "date": date})]
    if "book_berth" not in named:
        berths = next(str(result.content) for result in results if result.name == "free_berths")
        berth = berths.split(", ")[0]
        booking = ("book_berth", {"vessel": vessel, "berth": berth, "date": date})
        if not tides:
            return f"I book {berth}.", [booking]
        letter = {"to": f"the master of {vessel}", "text": f"{berth} waits for you on {date}."}
        return f"I book {berth} and write to the master.", [
            booking,
            ("send_letter", letter),
        ]
    outcomes = " | ".join(str(result.content) for result in results if result.name in ("book_berth", "send_letter"))
    return f"What came of it: {outcomes}", ()


def _read(request: str) -> tuple[str, int, str]:
    vessel = re.search(r"(?:for|vessel) (?:the )?([A-Z]\w+)", request)
    length = re.search(r"(\d+) ?m\b", request)
    date = re.search(r"\d{4}-\d\d-\d\d", request)
    return (
        vessel.group(1) if vessel else "Aurora",
        int(length.group(1)) if length else 40,
        date.group(0) if date else "2027-05-01",
    )
