"""The assistant's tools: each one's arguments, need for approval, undo and time limit.

The model is offered this table, and the gate follows it. A call that cannot be parsed is reported to the model in place
of its result; nobody is asked about it and it does not run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from django.conf import settings
from pydantic import BaseModel, ValidationError

from agents import EffectFailed
from agents.definition.fields import errors_of
from checkpoints.errors import ValueRefused
from checkpoints.values.canonical_json import parse_json

from . import files, web
from .state import (
    AnyCall,
    Asked,
    Getting,
    HttpGet,
    ListFiles,
    Listing,
    Message,
    ReadFile,
    Reading,
    RunCommand,
    Running,
    There,
    WriteFile,
    Writing,
)

Arguments = TypeVar("Arguments", bound=BaseModel)
MOST = 10  # calls of one turn
TOLD = 24_000  # characters of an answer that the model is told


@dataclass(frozen=True)
class Tool:
    """One tool."""

    takes: type[BaseModel]
    call: type[Any]  # of AnyCall
    title: str
    asks: Callable[[Any], bool]  # by its arguments: whether a gate has to ask for it
    reverses: str  # the undo that takes it back; "" where nothing does
    seconds: float  # that the step or the effect in which it is called may take
    pinned: tuple[str, ...] = ()  # of its arguments, those that a gate shows first


def _unless_known(arguments: HttpGet) -> bool:
    """Whoever deployed it may have named hosts that are asked without a gate."""
    try:
        return web.parse_address(arguments.url).host not in settings.HOLDPOINT_ASSISTANT_HOSTS
    except web.AddressWrong:
        return True


TOOLS = {
    "list_files": Tool(ListFiles, Listing, "List files", lambda _: False, "", 60),
    "read_file": Tool(ReadFile, Reading, "Read a file", lambda _: False, "", 60),
    "write_file": Tool(WriteFile, Writing, "Write a file", lambda _: True, "put_back", 60, ("/path",)),
    "run_command": Tool(RunCommand, Running, "Run a command", lambda _: True, "", 150, ("/argv",)),
    "http_get": Tool(HttpGet, Getting, "Fetch an address", _unless_known, "", 60, ("/url",)),
}


@cache
def list_tools() -> list[dict[str, Any]]:
    """Return the tools in the form that the model's endpoint takes."""
    return [
        {
            "type": "function",
            "function": {"name": name, "description": tool.takes.__doc__, "parameters": tool.takes.model_json_schema()},
        }
        for name, tool in TOOLS.items()
    ]


def read_calls(asked: Sequence[Asked]) -> tuple[list[AnyCall], list[Message]]:
    """Return the calls that can be made, and what the model is told in place of the others."""
    calls: list[AnyCall] = []
    told: list[Message] = []
    written: set[str] = set()
    for number, each in enumerate(asked):
        try:
            if number >= MOST:
                raise ValueError(f"One turn has at most {MOST} calls; make the others afterwards.")
            call = _call(each, number)
            if isinstance(call, Writing) and call.arguments.path in written:
                raise ValueError(f"This turn writes {call.arguments.path} already; write it once, or again afterwards.")
            written |= {call.arguments.path} if isinstance(call, Writing) else set()
            calls.append(call)
        except ValueError as error:
            told.append(Message(role="tool", answers=each.id, content=f"{error} Nothing was done."))
    return calls, told


def _call(asked: Asked, number: int) -> AnyCall:
    """Raises ValueError, whose sentence the model is told."""
    tool = TOOLS.get(asked.name)
    if tool is None:
        raise ValueError(f"There is no tool {asked.name!r}; there is {', '.join(TOOLS)}.")
    try:
        given = parse_json(asked.arguments or "{}")
        arguments = tool.takes.model_validate(given)
    except ValueRefused as error:
        raise ValueError(f"The arguments are no JSON that can be read: {error}. Write them again.") from error
    except ValidationError as error:
        wrong = "; ".join(f"{each['pointer'] or '/'}: {each['message']}" for each in errors_of(error)[:10])
        raise ValueError(f"The arguments do not fit {asked.name}: {wrong}. Write them again.") from error
    made: AnyCall = tool.call(
        id=f"{asked.name}.{number + 1}",
        ref=asked.id,
        arguments=arguments,
        asks=tool.asks(arguments),
        asked=arguments.model_dump(mode="json"),
    )
    return made


def name_calls(ids: Sequence[str], turn: int) -> list[str]:
    """Return the ids of a turn's calls in the conversation: the endpoint's own if every call has a different one.

    Otherwise each id is nine letters and digits, which every endpoint takes back.
    """
    if all(ids) and len(set(ids)) == len(ids):
        return list(ids)
    return [f"call{turn % 1000:03}{number % 100:02}" for number, _ in enumerate(ids)]


def perform(folder: str, call: AnyCall) -> str:
    """Make a call that nobody has to be asked about, and return what it gives."""
    try:
        if isinstance(call, Listing):
            return files.list_folder(folder, call.arguments.path)
        if isinstance(call, Reading):
            return clip(files.read(folder, call.arguments.path))
        if isinstance(call, Getting):
            return web.get(call.arguments.url)
    except FileNotFoundError:
        return "There is no such folder."
    except files.FileRefused as refused:
        return f"{refused} Nothing was done."
    raise AssertionError(f"{call.tool} is never performed without a gate")


def look_before(folder: str, call: AnyCall, *, shown: int) -> list[There]:
    """Return the first `shown` characters of what a call would write over.

    Raises FileRefused for what it may not write.
    """
    if not isinstance(call, Writing):
        return []
    return [files.look(folder, call.id, call.arguments.path, shown=shown)]


def find_call(calls: Sequence[AnyCall], id: str, takes: type[Arguments]) -> Arguments:
    """Return the arguments of one call. Raises EffectFailed where it is not there, or is another tool's."""
    found = next((call.arguments for call in calls if call.id == id), None)
    if not isinstance(found, takes):
        raise EffectFailed(f"There is no call {id} with such arguments, so nothing was done.")
    return found


def clip(text: str) -> str:
    """As much of a text as the model is told at once."""
    return text if len(text) <= TOLD else f"{text[:TOLD]}\n… {len(text) - TOLD:,} characters more are left out."
