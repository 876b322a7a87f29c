"""How things are broken, and healed. Whoever breaks something says in a few words what was done."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import psycopg
import redis

from checkpoints import crash_points

from ..installation.stack import Stack

OF_PEOPLE = ("before_rewind", "after_rewind", *crash_points.OF_SIGNALS, *crash_points.OF_WAKES)  # the web passes them
ACTIONS = ("kill", "raise", "cut", "sleep")
Begin = Callable[[Stack, random.Random], str]
Heal = Callable[[Stack, str], None]
Lacks = Callable[[Stack], str]
LIBRARY = "libfaketimeMT.so.1"
AHEAD = (600, -600, 90, -90)  # seconds by which a clock is wrong


def worker(rng: random.Random) -> str:
    """Choose a worker."""
    return rng.choice(("worker-1", "worker-2"))


def kill(choose: Callable[[random.Random], str]) -> Begin:
    """Kill a part's whole group, as a lost machine."""

    def begin(stack: Stack, rng: random.Random) -> str:
        name = choose(rng)
        stack.running[name].kill()
        return name

    return begin


def kill_child(stack: Stack, rng: random.Random) -> str:
    """Kill one process of a worker that does the steps."""
    name = worker(rng)
    with suppress(psutil.Error):
        children = psutil.Process(stack.running[name].pid).children()
        if children:
            rng.choice(children).kill()
            return f"{name} child"
    return f"{name} had none"


def terminate(choose: Callable[[random.Random], str]) -> Begin:
    """Ask a part to stop; what is not done by the time that it is healed is killed."""

    def begin(stack: Stack, rng: random.Random) -> str:
        name = choose(rng)
        with suppress(ProcessLookupError):
            stack.running[name].process.send_signal(signal.SIGTERM)
        return name

    return begin


def pause(choose: Callable[[random.Random], str]) -> Begin:
    """Stop a part's clock."""

    def begin(stack: Stack, rng: random.Random) -> str:
        name = choose(rng)
        with suppress(ProcessLookupError):
            stack.running[name].pause()
        return name

    return begin


def resume(stack: Stack, name: str) -> None:
    """Let it go on."""
    with suppress(ProcessLookupError):
        os.killpg(stack.running[name].pid, signal.SIGCONT)


def run_again(stack: Stack, name: str) -> None:
    """Start the part again."""
    stack.run(name)


def nothing(stack: Stack, said: str) -> None:
    """Nothing is to be healed."""


def crash(points: Sequence[str], choose: Callable[[random.Random], str]) -> Begin:
    """Start a part anew that crashes at a named point: at its first or second hit, counted in a file."""

    def begin(stack: Stack, rng: random.Random) -> str:
        name, point = choose(rng), rng.choice(points)
        action, hit = rng.choice(ACTIONS), rng.choice((1, 1, 2))
        counted = hits(stack, f"{point}-{action}-{rng.randrange(10**9)}")
        stack.run(name, HOLDPOINT_CRASH=f"{point}:{action}:{hit}:{counted}")
        return f"{name} {point}:{action}:{hit} {counted.name}"

    return begin


def hits(stack: Stack, name: str) -> Path:
    """Return the file in which a crash point's hits are counted."""
    folder = stack.folder / "hits"
    folder.mkdir(exist_ok=True)
    return folder / name


def end_crash(stack: Stack, said: str) -> None:
    """Start the part anew, without what it was started with."""
    stack.run(said.split(" ")[0])


def bit(stack: Stack, said: str) -> bool:
    """Tell whether a crash point was reached."""
    _, wish, name = said.split(" ")
    counted = hits(stack, name)
    return counted.exists() and counted.stat().st_size >= int(wish.split(":")[2])


def two_sweepers(stack: Stack, rng: random.Random) -> str:
    """Run a second sweeper."""
    stack.run("spare")
    return "spare"


def drop(stack: Stack, name: str) -> None:
    """Kill a part that is not needed."""
    if name in stack.running:
        stack.drop(name)


def stop_postgres(stack: Stack, rng: random.Random) -> str:
    stack.stop_postgres()
    return "immediate"


def kill_redis(stack: Stack, rng: random.Random) -> str:
    stack.kill_redis()
    return "killed"


def flush_redis(stack: Stack, rng: random.Random) -> str:
    stack.flush_redis()
    return "flushed"


def fill_disk(stack: Stack, rng: random.Random) -> str:
    stack.disks.fill_artifacts()
    return "full"


def fill_database_disk(stack: Stack, rng: random.Random) -> str:
    stack.disks.fill_database()
    return "full"


def lacks_disk(stack: Stack) -> str:
    """Say what it takes to fill PostgreSQL's disk."""
    return "" if stack.disks.has_database else "only root can mount a disk for PostgreSQL"


def copy_messages(stack: Stack, rng: random.Random) -> str:
    """Deliver messages three times at once; healed, once more, long after they were done."""
    return f"{stack.copy_messages()} copied"


def copy_again(stack: Stack, said: str) -> None:
    """Deliver them once more. A broker that is away has lost them."""
    with suppress(redis.RedisError):
        stack.copy_again()


def library() -> str:
    """Return where libfaketime is installed; "" for nowhere."""
    found = [path for folder in ("/usr/lib", "/usr/local/lib") for path in Path(folder).glob(f"*/faketime/{LIBRARY}")]
    return str(found[0]) if found else ""


def lacks_library(stack: Stack) -> str:
    """Say what it takes to have a wrong clock."""
    return "" if library() else "the package libfaketime is not installed"


def wrong_clock(choose: Callable[[random.Random], str]) -> Begin:
    """Start a part anew whose clock is wrong; the monotonic one is right, as everywhere."""

    def begin(stack: Stack, rng: random.Random) -> str:
        name, ahead = choose(rng), rng.choice(AHEAD)
        stack.run(name, LD_PRELOAD=library(), FAKETIME=f"{ahead:+d}", FAKETIME_DONT_FAKE_MONOTONIC="1")
        return f"{name} {ahead:+d} s"

    return begin


def take_connections(stack: Stack, rng: random.Random) -> str:
    return f"{stack.take_connections()} taken"


def lock_runs(stack: Stack, rng: random.Random) -> str:
    with suppress(psycopg.errors.LockNotAvailable):
        stack.lock_runs()
        return "locked"
    return "not locked in time"


def delay(proxy: str) -> Begin:
    """Delay every block on the way to a server."""

    def begin(stack: Stack, rng: random.Random) -> str:
        seconds = rng.choice((0.01, 0.05, 0.2))
        getattr(stack, proxy).delay = seconds
        return f"{proxy} {seconds}"

    return begin


def cut(proxy: str) -> Begin:
    """Reset all connections to a server, and refuse new ones until it is healed."""

    def begin(stack: Stack, rng: random.Random) -> str:
        getattr(stack, proxy).refuses = True
        return f"{proxy} {getattr(stack, proxy).cut()} connections"

    return begin


def half_open(proxy: str) -> Begin:
    """Pass nothing on to a server and tell nobody."""

    def begin(stack: Stack, rng: random.Random) -> str:
        getattr(stack, proxy).silent = True
        return proxy

    return begin


def heal_proxy(stack: Stack, said: str) -> None:
    """Pass everything on."""
    getattr(stack, said.split(" ")[0]).heal()


def provider(stack: Stack, rng: random.Random) -> str:
    """Let the provider do the next requests and lose the answers, or be silent."""
    kind, on = rng.choice(("cut_after", "500_after", "500", "cut_before")), rng.choice(("refunds", "orders", "charges"))
    with suppress(httpx.HTTPError):
        httpx.post(f"{stack.sandbox}/faults", json={"on": on, "kind": kind, "times": rng.randrange(1, 4)}, timeout=5)
    return f"{on} {kind}"


def heal_provider(stack: Stack, said: str) -> None:
    """End the provider's faults."""
    with suppress(httpx.HTTPError):
        httpx.delete(f"{stack.sandbox}/faults", timeout=5)


def elsewhere(rng: random.Random) -> str:
    """Choose a part that is no worker."""
    return rng.choice(("web", "sweeper", "beat"))


def always(name: str) -> Callable[[random.Random], str]:
    """Choose this part."""
    return lambda rng: name
