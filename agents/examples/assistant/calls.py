"""The tools that the assistant's model is offered, the calls that it makes of them, and how risky each is.

The gate follows the same table. A call that cannot be read is reported to the model in place of its result: nobody is
asked about it, and it does not run. Rules set the risk, from the calls alone. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from django.conf import settings
from pydantic import Field, ValidationError, model_validator

from agents.definition.fields import errors_of
from agents.examples.nouns import Noun, count_invisible
from approvals.english import count_of, join_names
from checkpoints.errors import ValueRefused
from checkpoints.values.canonical_json import parse_json
from checkpoints.values.characters import one_line

from .tools import Replaced, parse_address

ToolName = Literal["list_files", "read_file", "write_file", "run_command", "http_get"]
MULTILINE: dict[str, Any] = {"format": "multiline"}
MOST = 10  # calls of one turn
FREE = ("list_files", "read_file")  # are called without a gate
LEVELS = ("low", "medium", "high", "critical")
PROGRAMS = (  # the level, why, and the names
    ("critical", "Takes the rights of another account: {}", "sudo su doas pkexec nsenter chroot setpriv"),
    ("high", "Runs a shell, which does what its text says: {}", "sh bash dash zsh ksh fish csh tcsh busybox"),
    ("high", "Runs a program that it brings along: {}", "python perl ruby node php awk gawk lua osascript"),
    ("high", "Can destroy files: {}", "rm dd shred mkfs truncate mv chmod chown kill pkill killall"),
    ("high", "Can reach other machines: {}", "curl wget ssh scp sftp rsync nc ncat telnet git pip npm docker"),
    ("medium", "Runs another command through {}", "env nice nohup xargs timeout time find setsid stdbuf ionice"),
)
WRAPPERS = PROGRAMS[-1][2].split()


class InFolder(Noun):
    path: str = Field(
        default=".", title="Path", description="Within the folder, such as notes; . is the folder itself."
    )


class WriteFile(Noun):
    path: str = Field(title="File", description="Within the folder, such as notes/today.md.", max_length=500)
    content: str = Field(
        title="Content", description="All of the file's new text.", max_length=200_000, json_schema_extra=MULTILINE
    )


class RunCommand(Noun):
    argv: list[str] = Field(
        title="Command",
        description='The program and its arguments, one each: ["grep", "-rn", "TODO", "."]. No shell reads them.',
        min_length=1,
        max_length=200,
    )
    seconds: int = Field(60, title="Seconds that it may take", description="It is ended after that.", ge=1, le=120)


class HttpGet(Noun):
    url: str = Field(title="Address", description="http:// or https://. Redirects are not followed.", max_length=2_000)


class Tool(NamedTuple):
    takes: type[Noun]
    title: str
    does: str  # as the model is offered it
    pinned: str  # the argument that a gate shows first
    verb: str  # what a call does with that, in one word


TOOLS: dict[ToolName, Tool] = {
    "list_files": Tool(InFolder, "List files", "List what is in a folder.", "path", "list "),
    "read_file": Tool(InFolder, "Read a file", "Read a text file.", "path", "read "),
    "write_file": Tool(WriteFile, "Write a file", "Write a text file; its folders are made.", "path", "write "),
    "run_command": Tool(RunCommand, "Run a command", "Run a command in the folder, without a shell.", "argv", ""),
    "http_get": Tool(HttpGet, "Fetch an address", "Fetch a page or an API's answer by GET.", "url", "fetch "),
}


class Call(Noun):
    """One call of a tool, with the arguments that are to be used."""

    tool: ToolName
    id: str  # as people read it: "run_command.2", the second call of its turn
    ref: str  # as the conversation has it
    asks: bool = True  # a gate asks for it
    asked: dict[str, Any] = Field(default_factory=dict)  # the arguments as the model gave them
    arguments: dict[str, Any]

    @model_validator(mode="after")
    def fits_its_tool(self) -> Call:
        self.arguments = TOOLS[self.tool].takes.model_validate(self.arguments).model_dump(mode="json")
        return self

    def __str__(self) -> str:
        """Describe the call in one line, for people."""
        value = self.arguments[TOOLS[self.tool].pinned]
        return TOOLS[self.tool].verb + one_line(value if isinstance(value, str) else " ".join(value), 120)


@cache
def describe_tools() -> list[dict[str, Any]]:
    """Return the tools in the form that the model's endpoint takes."""
    named = [(name, tool.does, tool.takes.model_json_schema()) for name, tool in TOOLS.items()]
    functions = [{"name": name, "description": does, "parameters": schema} for name, does, schema in named]
    return [{"type": "function", "function": function} for function in functions]


def read_calls(asked: Sequence[dict[str, Any]]) -> tuple[list[Call], dict[str, str]]:
    """Return the calls that can be made, and for each other the sentence that the model gets, by its id."""
    calls, faults = list[Call](), dict[str, str]()
    for number, request in enumerate(asked, 1):
        try:
            if number > MOST:
                raise ValueError(f"One turn has at most {MOST} calls; make the others afterwards.")
            calls.append(_read_call(**request["function"], number=number, ref=request["id"]))
        except ValueError as error:
            faults[request["id"]] = f"{error} Nothing was done."
    return calls, faults


def _read_call(name: Any, arguments: str, number: int, ref: str) -> Call:
    if name not in TOOLS:
        raise ValueError(f"There is no tool {name!r}; there is {join_names(TOOLS)}.")
    try:
        values = TOOLS[name].takes.model_validate(parse_json(arguments or "{}")).model_dump(mode="json")
    except ValueRefused as error:
        raise ValueError(f"The arguments are no JSON that can be read: {error}. Write them again.") from error
    except ValidationError as error:
        wrong = "; ".join(f"{fault['pointer'] or '/'}: {fault['message']}" for fault in errors_of(error)[:10])
        raise ValueError(f"The arguments do not fit {name}: {wrong}. Write them again.") from error
    asks = name not in FREE
    if name == "http_get":  # whoever deployed it may have named hosts that are asked without a gate
        asks = parse_address(values["url"]).host not in settings.HOLDPOINT_ASSISTANT_HOSTS
    return Call(tool=name, id=f"{name}.{number}", ref=ref, asks=asks, asked=values, arguments=values)


def title_calls(calls: Sequence[Call]) -> str:
    """Return the title of a gate for these calls."""
    first, more = str(calls[0]), len(calls) - 1
    title = one_line(first[:1].upper() + first[1:], 80)
    return f"{title}, and {count_of(more, 'more call')}" if more else title


def assess_calls(calls: Sequence[Call], replaced: Sequence[Replaced]) -> tuple[str, list[str]]:
    """(level, reasons): the highest level that any call asks for."""
    over = {file.call for file in replaced if file.digest}
    risks = list(dict.fromkeys(risk for call in calls for risk in _risks(call, over=call.id in over)))
    return max((level for level, _ in risks), key=LEVELS.index), [reason for _, reason in risks]


def _risks(call: Call, *, over: bool) -> Iterator[tuple[str, str]]:
    if call.tool == "write_file":
        path, text = call.arguments["path"], call.arguments["content"]
        name = one_line(path, 80)
        yield ("medium", f"Writes over {name}") if over else ("low", f"Makes {name}")
        if any(part.startswith(".") for part in PurePosixPath(path).parts):
            yield "high", f"Its name begins with a dot, so programs may obey it: {name}"
        if text.startswith("#!"):
            yield "medium", "It is a program"
        if hidden := count_invisible(text + path):
            yield "high", f"{count_of(hidden, 'character')} in it cannot be seen"
    elif call.tool == "run_command":
        argv = call.arguments["argv"]
        yield "medium", "Runs a command, which cannot be undone"
        names = [PurePosixPath(word).name for word in argv]
        if names[0] not in WRAPPERS:  # which run another that is one of their arguments
            names = names[:1]
        for level, reason, programs in PROGRAMS:
            for name in names:
                if name.rstrip("0123456789.") in programs.split():
                    yield level, reason.format(one_line(name, 40))
        if any(word.startswith("/") or ".." in word.split("/") for word in argv[1:]):
            yield "high", "Names a place outside the folder"
    else:
        address = urlsplit(call.arguments["url"])
        yield "low", f"Asks {one_line(address.hostname or '?', 80)}, which learns of it"
        if address.query or len(address.path) > 200:
            yield "medium", "The address carries more than a place: what is in it leaves the house"
        if address.scheme == "http":
            yield "medium", "The address is not encrypted on its way"
