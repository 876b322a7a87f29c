"""The facts that a preflight is judged by: what is saved, and what is known of the code that would go on. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCheckpoint:
    """The checkpoint: its number, why it does not verify, and the artifacts that its state names."""

    seq: int
    fault: str = ""
    artifacts: int = 0  # how many
    missing: tuple[str, ...] = ()  # places in the state (JSON Pointers) that name one that is not there
    unseen: str = ""  # why the storage could not be asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """How a newer version takes the run."""

    version: str
    upcasters: tuple[str, ...]  # in the order in which they run
    renamed: tuple[tuple[str, str], ...] = ()  # (old, new) names of steps
    lacks: tuple[str, ...] = ()  # steps the run may still come to, and the newer version has under no name
    fault: str = ""  # why it cannot


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A library that the agent declares: its version when the run started and now.

    None: it is not installed; "" when the run started: nothing was recorded of it.
    """

    name: str
    recorded: str | None
    now: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentFacts:
    """The configuration and the libraries as they would be, against what was recorded when the run started."""

    configured: bool = False  # whether the agent has a configuration
    recorded: bool = True  # whether one was recorded
    fault: str = ""  # why the recorded one does not fit the agent's any more
    changed: tuple[str, ...] = ()  # the names whose value would not be what was recorded
    libraries: tuple[Library, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteProgram:
    """The program elsewhere that has the code of an agent which lives outside."""

    name: str = ""  # what it calls itself
    heard: str = ""  # how long ago, in words
    missed: bool = False
    deferred: bool = False  # it said that it goes away meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCode:
    """What this process knows of the agent's code.

    `deployed`: the run's version, with the very plan that the run goes by; `changed`: that version with another one.
    `faults`, `doubts` and `environment` are those of whichever version would go on, and empty where none would.
    """

    agent: str
    version: str
    deployed: bool = False
    changed: bool = False
    newest: str = ""  # the newest version here
    lacks: tuple[str, ...] = ()  # the run's steps that the newest version does not have
    takeover: Takeover | None = None
    faults: tuple[str, ...] = ()  # fields of the state that no step could read
    doubts: tuple[str, ...] = ()  # what only the state as a whole does not fit: an edit would be refused for it
    environment: EnvironmentFacts | None = None
    program: RemoteProgram | None = None  # of an agent that lives outside

    @property
    def goes_on_in(self) -> str:
        """Return the version that would go on; empty where none can."""
        if self.takeover and not (self.takeover.fault or self.takeover.lacks):
            return self.takeover.version
        return self.version if self.deployed else ""


@dataclass(frozen=True, slots=True)
class UnknownCode:
    """Why nothing of the code was looked at."""

    why: str | Promise


NOBODY = UnknownCode(gettext_lazy("The agents' code is not part of this process, so it was not checked here."))
