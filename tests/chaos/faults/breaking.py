"""How things are broken, and healed. Whoever breaks something says in a few words what was done."""

from __future__ import annotations

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
from tests.harness.services import Service

from ..installation.stack import Stack
from ..installation.tcp_proxy import TcpProxy

OF_PEOPLE = ("before_rewind", "after_rewind", *crash_points.OF_SIGNALS, *crash_points.OF_WAKES)  # the web passes them
ACTIONS = ("kill", "raise", "cut", "sleep")
Begin = Callable[[Stack, random.Random], str]
Heal = Callable[[Stack, str], object]
Lacks = Callable[[Stack], str]
Choose = Callable[[random.Random], str]
LIBRARY = "libfaketimeMT.so.1"
AHEAD = (600, -600, 90, -90)  # seconds by which a clock is wrong


def worker(rng: random.Random) -> str:
    return rng.choice(("worker-1", "worker-2"))


def elsewhere(rng: random.Random) -> str:
    return rng.choice(("web", "sweeper", "beat"))


def always(name: str) -> Choose:
    return lambda rng: name


def to_part(choose: Choose, do: Callable[[Service], object]) -> Begin:
    """Do something to a part, if it still runs."""

    def begin(stack: Stack, rng: random.Random) -> str:
        name = choose(rng)
        with suppress(ProcessLookupError):
            do(stack.running[name])
        return name

    return begin


def kill(choose: Choose) -> Begin:
    return to_part(choose, Service.kill)


def terminate(choose: Choose) -> Begin:
    """Ask a part to stop; what is not done by the time that it is healed is killed."""
    return to_part(choose, lambda service: service.process.send_signal(signal.SIGTERM))


def pause(choose: Choose) -> Begin:
    return to_part(choose, Service.pause)


def resume(stack: Stack, name: str) -> None:
    with suppress(ProcessLookupError):
        stack.running[name].resume()


def kill_child(stack: Stack, rng: random.Random) -> str:
    """Kill one process of a worker that does the steps."""
    name = worker(rng)
    with suppress(psutil.Error):
        children = psutil.Process(stack.running[name].pid).children()
        if children:
            rng.choice(children).kill()
            return f"{name} child"
    return f"{name} had none"


def crash(points: Sequence[str], choose: Choose) -> Begin:
    """Start a part anew that crashes at a named point: at its first or second hit, counted in a file."""

    def begin(stack: Stack, rng: random.Random) -> str:
        name, point = choose(rng), rng.choice(points)
        action, hit = rng.choice(ACTIONS), rng.choice((1, 1, 2))
        counted = hits(stack, f"{point}-{action}-{rng.randrange(10**9)}")
        stack.run(name, HOLDPOINT_CRASH=f"{point}:{action}:{hit}:{counted}")
        return f"{name} {point}:{action}:{hit} {counted.name}"

    return begin


def hits(stack: Stack, name: str) -> Path:
    folder = stack.folder / "hits"
    folder.mkdir(exist_ok=True)
    return folder / name


def bit(stack: Stack, said: str) -> bool:
    """Tell whether a crash point was reached."""
    _, wish, name = said.split(" ")
    counted = hits(stack, name)
    return counted.exists() and counted.stat().st_size >= int(wish.split(":")[2])


def wrong_clock(choose: Choose) -> Begin:
    """Start a part anew whose clock is wrong; the monotonic one is right, as everywhere."""

    def begin(stack: Stack, rng: random.Random) -> str:
        name, ahead = choose(rng), rng.choice(AHEAD)
        stack.run(name, LD_PRELOAD=library(), FAKETIME=f"{ahead:+d}", FAKETIME_DONT_FAKE_MONOTONIC="1")
        return f"{name} {ahead:+d} s"

    return begin


def run_again(stack: Stack, said: str) -> None:
    """Start the part anew, without what it was started with."""
    stack.run(said.split(" ")[0])


def drop(stack: Stack, name: str) -> None:
    if name in stack.running:
        stack.drop(name)


def library() -> str:
    """Return where libfaketime is installed; "" for nowhere."""
    found = [path for folder in ("/usr/lib", "/usr/local/lib") for path in Path(folder).glob(f"*/faketime/{LIBRARY}")]
    return str(found[0]) if found else ""


def lacks_library(stack: Stack) -> str:
    return "" if library() else "the package libfaketime is not installed"


def lacks_disk(stack: Stack) -> str:
    return "" if stack.disks.has_database else "only root can mount a disk for PostgreSQL"


def to_stack(do: Callable[[Stack], object], said: str) -> Begin:
    """Do something to the whole; `said` is filled in with what it returns."""
    return lambda stack, rng: said.format(do(stack))


def healed(do: Callable[[Stack], object]) -> Heal:
    return lambda stack, said: do(stack)


fill_artifacts = to_stack(lambda stack: stack.disks.fill_artifacts(), "full")
free_artifacts = healed(lambda stack: stack.disks.free_artifacts())
fill_database = to_stack(lambda stack: stack.disks.fill_database(), "full")


def nothing(stack: Stack, said: str) -> None:
    """Nothing is to be healed."""


def copy_again(stack: Stack, said: str) -> None:
    """Deliver them once more. A broker that is away has lost them."""
    with suppress(redis.RedisError):
        stack.copy_again()


def lock_runs(stack: Stack, rng: random.Random) -> str:
    with suppress(psycopg.errors.LockNotAvailable):
        stack.lock_runs()
        return "locked"
    return "not locked in time"


def to_proxy(name: str, do: Callable[[TcpProxy, random.Random], object]) -> Begin:
    """Do something to the way to a server."""
    return lambda stack, rng: f"{name} {do(getattr(stack, name), rng)}"


def delay(proxy: TcpProxy, rng: random.Random) -> float:
    """Delay every block."""
    proxy.delay = rng.choice((0.01, 0.05, 0.2))
    return proxy.delay


def cut(proxy: TcpProxy, rng: random.Random) -> int:
    """Reset all connections, and refuse new ones until it is healed."""
    proxy.refuses = True
    return proxy.cut()


def half_open(proxy: TcpProxy, rng: random.Random) -> str:
    """Pass nothing on and tell nobody."""
    proxy.silent = True
    return "silent"


def heal_proxy(stack: Stack, said: str) -> None:
    getattr(stack, said.split(" ")[0]).heal()


def provider(stack: Stack, rng: random.Random) -> str:
    """Let the provider do the next requests and lose the answers, or be silent."""
    kind, on = rng.choice(("cut_after", "500_after", "500", "cut_before")), rng.choice(("refunds", "orders", "charges"))
    with suppress(httpx.HTTPError):
        httpx.post(f"{stack.sandbox}/faults", json={"on": on, "kind": kind, "times": rng.randrange(1, 4)}, timeout=5)
    return f"{on} {kind}"


def heal_provider(stack: Stack, said: str) -> None:
    with suppress(httpx.HTTPError):
        httpx.delete(f"{stack.sandbox}/faults", timeout=5)
