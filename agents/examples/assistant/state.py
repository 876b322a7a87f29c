"""The data types of the assistant, as they are saved in a run's state."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from agents.examples.nouns import Noun

LONGEST = 200_000  # characters of a file that is written
SECONDS = 120  # that a command may take, at most


class Asked(Noun):
    """A call as the model wrote it: its arguments are text, which may be no JSON at all."""

    id: str
    name: str
    arguments: str


class Message(Noun):
    """One message of the conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    calls: list[Asked] = Field(default_factory=list)  # of an assistant's
    answers: str = ""  # of a tool's: the id of the call


class ListFiles(Noun):
    """List what is in a folder."""

    path: str = Field(default=".", title="Folder", description="Within the folder; . is the folder itself.")


class ReadFile(Noun):
    """Read a text file."""

    path: str = Field(title="File", description="Within the folder, such as notes/today.md.")


class WriteFile(Noun):
    """Write a text file, over what was there. Its folders are made."""

    path: str = Field(title="File", description="Within the folder, such as notes/today.md.", max_length=500)
    content: str = Field(
        title="Content",
        description="All of the file's new text.",
        max_length=LONGEST,
        json_schema_extra={"format": "multiline"},
    )


class RunCommand(Noun):
    """Run a command in the folder, without a shell."""

    argv: list[str] = Field(
        title="Command",
        description='The program and its arguments, one each: ["grep", "-rn", "TODO", "."]. No shell reads them.',
        min_length=1,
        max_length=200,
    )
    seconds: int = Field(
        default=60, title="Seconds that it may take", description="It is ended after that.", ge=1, le=SECONDS
    )


class HttpGet(Noun):
    """Fetch a web page or an API's answer by GET."""

    url: str = Field(title="Address", description="http:// or https://. Redirects are told and not followed.",
                     max_length=2_000)  # fmt: skip


class Call(Noun):
    """One call of a tool, with the arguments that are to be used."""

    id: str  # as people read it: "run_command.2", the second call of its turn
    ref: str  # as the conversation has it
    asks: bool = True  # a gate asks for it
    asked: dict[str, Any] = Field(default_factory=dict)  # the arguments as the model gave them


class Listing(Call):
    tool: Literal["list_files"] = "list_files"
    arguments: ListFiles


class Reading(Call):
    tool: Literal["read_file"] = "read_file"
    arguments: ReadFile


class Writing(Call):
    tool: Literal["write_file"] = "write_file"
    arguments: WriteFile


class Running(Call):
    tool: Literal["run_command"] = "run_command"
    arguments: RunCommand


class Getting(Call):
    tool: Literal["http_get"] = "http_get"
    arguments: HttpGet


AnyCall = Annotated[Listing | Reading | Writing | Running | Getting, Field(discriminator="tool")]


class There(Noun):
    """What a file holds over which a call wants to write, as the reviewer is shown it."""

    call: str  # the call's id
    path: str
    digest: str  # SHA-256 in hex; "" where there is no such file
    text: str = ""  # its beginning; empty where it is no text


class Written(Noun):
    """What writing a file changed, for whoever takes it back."""

    path: str
    digest: str  # SHA-256 of what was written
    before: dict[str, Any] | None = None  # the artifact of what was there; None where nothing was
    mode: int = 0o644  # the permissions that it had
    made: list[str] = Field(default_factory=list)  # the folders that were made for it, the outermost first


class Usage(Noun):
    """What the model's turns took, as its endpoint counts it."""

    turns: int = 0
    read: int = 0  # tokens that it was given
    wrote: int = 0  # tokens that it made
    cost: Decimal | None = None  # US dollars, where prices are set


class Feedback(BaseModel):
    """A reviewer's words; those about one call name it, and the place in its arguments. The runner fills it in."""

    text: str
    by: str
    at: str
    gate: int
    action: str = ""
    pointer: str = ""


class Decision(BaseModel):
    """How the last gate ended, call by call. The runner fills it in, and may know more."""

    gate: str
    kind: str
    by: str
    changes: list[dict[str, Any]]
    verdicts: dict[str, dict[str, Any]] = Field(default_factory=dict)
