"""The checkpointer's backend in a process that has set up Django, for instance a Celery worker."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.contrib.auth.models import Group
from django.db import InterfaceError, OperationalError
from django.utils.functional import cached_property
from holdpoint.errors import HoldpointError
from holdpoint.langgraph import saver_errors
from holdpoint.langgraph.backend import ChannelHistory, New, Stored, Write, read_pages

from agents.work_errors import WorkRefused
from checkpoints import actors
from checkpoints.errors import NotVerified, ValueRefused
from checkpoints.values.ops import DROP, Append

from . import handed, orders, places, reading, saving
from .handed import Connections
from .pending import Write as PendingWrite
from .places import Owner, Place
from .reading import Found, ListPlace
from .saving import NewCheckpoint, Seen

P = ParamSpec("P")
T = TypeVar("T")
ASK = (
    "Stored data of the thread does not verify: {error}. It is not handed out, because the graph would go on from "
    "something that was not saved. Look at the run on its page, restore the row from a backup, or rewind the run to "
    "a checkpoint before it; `python manage.py verify` lists all faults."
)


def _lending(call: Callable[Concatenate[InProcess, P], T]) -> Callable[Concatenate[InProcess, P], T]:
    """Run a method on a connection of the backend's own, and raise the errors of its programs."""

    @wraps(call)
    def lent(backend: InProcess, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            try:
                with backend.connections.lent():
                    return call(backend, *args, **kwargs)
            except (OperationalError, InterfaceError):  # the server was restarted, say; all that it does, it does once
                backend.connections.close()  # then the idle ones are lost too
                with backend.connections.lent():
                    return call(backend, *args, **kwargs)
        except NotVerified as error:
            raise saver_errors.Tampered(ASK.format(error=error)) from error
        except WorkRefused as error:
            raise saver_errors.REFUSALS.get(error.code, saver_errors.SaverError)(str(error)) from error
        except ValueRefused as error:
            raise saver_errors.Unsaveable(f"The checkpoint cannot be saved: {error}") from error

    return lent


def _settled(call: Callable[Concatenate[InProcess, P], T]) -> Callable[Concatenate[InProcess, P], T]:
    """Do the same once all writes that were handed over in this process are kept."""

    @_lending
    @wraps(call)
    def settled(backend: InProcess, /, *args: P.args, **kwargs: P.kwargs) -> T:
        handed.keep_all()
        return call(backend, *args, **kwargs)

    return settled


def _ordered(do: Callable[Concatenate[Owner, P], None]) -> Callable[Concatenate[InProcess, P], None]:
    """Return the method that does this with the owner's threads."""

    @_settled
    @wraps(do)
    def order(backend: InProcess, /, *args: P.args, **kwargs: P.kwargs) -> None:
        do(backend._owner, *args, **kwargs)

    return order


class InProcess:
    """Keeps the threads of a team's agent, in this process. It saves by itself, whatever transaction its caller is in.

    `by`: who is named as having written them; the agent, unless another actor is given.
    """

    def __init__(self, *, agent: str, team: str | Group, by: actors.Actor | None = None) -> None:
        self._team, self._agent, self._by = team, agent, by or actors.of_agent(agent)
        self._worker = f"{socket.gethostname()}:{os.getpid()}"[:120]
        self.connections = Connections()

    @cached_property
    def _owner(self) -> Owner:
        team = Group.objects.filter(name=self._team).first() if isinstance(self._team, str) else self._team
        if team is None:
            raise HoldpointError(f"There is no team {self._team!r}. Make it in the administration, or name another.")
        return Owner(team, self._agent, self._by, worker=self._worker)

    @_settled
    def get(self, thread: str, namespace: str, id: str | None) -> tuple[Stored | None, Any]:
        found, seen = reading.get(self._owner, Place(thread, namespace), id)
        return (_stored(found) if found else None), seen

    def listed(
        self, thread: str | None, namespace: str | None, *, before: str | None = None, limit: int | None = None,
        only: Mapping[str, Any] | None = None,
    ) -> Iterator[Stored]:  # fmt: skip
        @_settled
        def read(backend: InProcess, below: ListPlace | None, most: int) -> tuple[list[Stored], ListPlace | None]:
            found, place = reading.page(
                backend._owner, thread, namespace, before=before, below=below, limit=most, only=only
            )
            return [_stored(checkpoint) for checkpoint in found], place

        return read_pages(partial(read, self), limit)

    @_lending
    def put(self, thread: str, namespace: str, new: New, seen: Seen | None) -> Seen:
        fields = {
            name: value if verb == "set" else Append(value) if verb == "append" else DROP
            for name, (verb, value) in new.changes.items()
        }
        made = NewCheckpoint(new.id, new.parent, fields, new.whole, new.invocation)
        return saving.put(self._owner, Place(thread, namespace), made, seen)

    @_lending
    def put_writes(
        self, thread: str, namespace: str, id: str, writes: Sequence[tuple[int, str, Any]], task: str, path: str
    ) -> None:
        place = Place(thread, namespace)
        if any(number < 0 for number, *_ in writes) or "\0" in task + path:
            handed.keep_all()
            saving.put_writes(self._owner, place, id, writes, task=task, path=path)
        else:
            run = places.opened(self._owner, place)
            handed.hand_over(self.connections, run.run_id, run.stored(id), task, path, writes)

    @_settled
    def history(
        self, thread: str, namespace: str, id: str, channels: Mapping[str, str]
    ) -> Mapping[str, ChannelHistory]:
        found = reading.read_histories(self._owner, Place(thread, namespace), id, channels)
        return {
            name: ChannelHistory(_writes(past.writes), past.stored is not None, past.value)
            for name, past in found.items()
        }

    delete = _ordered(orders.delete)
    delete_for_runs = _ordered(orders.delete_invocations)
    copy = _ordered(orders.copy)
    prune = _ordered(orders.prune)

    def close(self) -> None:
        """Close the connections that are not in use."""
        handed.keep_all()
        self.connections.close()


def _stored(checkpoint: Found) -> Stored:
    return Stored(
        checkpoint.thread, checkpoint.namespace, checkpoint.id, checkpoint.parent, checkpoint.fields,
        _writes(checkpoint.writes), checkpoint.edited,
    )  # fmt: skip


def _writes(writes: Sequence[PendingWrite]) -> list[Write]:
    return [Write(write.task, write.channel, write.value) for write in writes]
