"""The faults: each begins and, after a while, is healed."""

from __future__ import annotations

from dataclasses import dataclass

from checkpoints import crash_points

from ..installation.stack import LEASE
from .breaking import (
    OF_PEOPLE,
    Begin,
    Heal,
    Lacks,
    always,
    copy_again,
    copy_messages,
    crash,
    cut,
    delay,
    drop,
    elsewhere,
    end_crash,
    fill_database_disk,
    fill_disk,
    flush_redis,
    half_open,
    heal_provider,
    heal_proxy,
    kill,
    kill_child,
    kill_redis,
    lacks_disk,
    lacks_library,
    lock_runs,
    nothing,
    pause,
    provider,
    resume,
    run_again,
    stop_postgres,
    take_connections,
    terminate,
    two_sweepers,
    worker,
    wrong_clock,
)


@dataclass(frozen=True)
class Fault:
    """One kind. `least` and `most`: seconds between its beginning and its healing. `heal` gets what `begin` said.

    `lacks` says what it would take that is not on this machine: then it is left out, and the campaign says so.
    """

    name: str
    begin: Begin
    heal: Heal
    least: float = 0.2
    most: float = 2.0
    lacks: Lacks = lambda stack: ""  # why this machine cannot have it


OF_WORKERS = tuple(
    point
    for points in (
        crash_points.POINTS, crash_points.OF_WAITS, crash_points.OF_CHILDREN, crash_points.OF_MID_STEP,
        crash_points.OF_HELD, crash_points.OF_DEFERRED, crash_points.OF_ORDERS, crash_points.OF_BESIDE,
    )
    for point in points
    if point not in OF_PEOPLE
)  # fmt: skip
OF_SWEEPERS = (*(crash_points.OF_TIMERS,) * 2, *crash_points.OF_ORDERS)  # it passes the first most often
WORKERS = (
    Fault("kill worker", kill(worker), run_again, 0.2, 3.0),
    Fault("kill child", kill_child, nothing, 0.2, 1.0),
    Fault("pause worker", pause(worker), resume, LEASE + 1, LEASE * 3),
    Fault("restart worker", terminate(worker), run_again, 0.5, 4.0),
    Fault("crash worker", crash(OF_WORKERS, worker), end_crash, 14.0, 20.0),
    Fault("wrong clock", wrong_clock(worker), end_crash, 6.0, 12.0, lacks_library),
    Fault("crash worker too", crash(OF_WORKERS, worker), end_crash, 14.0, 20.0),
    Fault("crash worker once more", crash(OF_WORKERS, worker), end_crash, 14.0, 20.0),
)
OTHERS = (
    Fault("crash web", crash(OF_PEOPLE, always("web")), end_crash, 10.0, 14.0),
    Fault("crash sweeper", crash(OF_SWEEPERS, always("sweeper")), end_crash, 10.0, 14.0),
    Fault("kill sweeper", kill(always("sweeper")), run_again, 1.0, 8.0),
    Fault("pause sweeper", pause(always("sweeper")), resume, 2.0, 8.0),
    Fault("two sweepers", two_sweepers, drop, 3.0, 8.0),
    Fault("kill beat", kill(always("beat")), run_again, 1.0, 5.0),
    Fault("pause beat", pause(always("beat")), resume, 2.0, 8.0),
    Fault("kill web", kill(always("web")), run_again, 0.2, 4.0),
    Fault("pause web", pause(always("web")), resume, 1.0, 6.0),
    Fault("restart web", terminate(always("web")), run_again, 0.5, 4.0),
    Fault("wrong clock elsewhere", wrong_clock(elsewhere), end_crash, 5.0, 10.0, lacks_library),
    Fault("kill program", kill(always("program")), run_again, 0.2, 3.0),
    Fault("kill provider", kill(always("sandbox")), run_again, 0.5, 4.0),
)
SERVERS = (
    Fault("stop postgres", stop_postgres, lambda stack, _: stack.start_postgres(), 0.5, 6.0),
    Fault("kill redis", kill_redis, lambda stack, _: stack.start_redis(), 0.5, 15.0),
    Fault("redis away", kill_redis, lambda stack, _: stack.start_redis(), 60.0, 65.0),
    Fault("flush redis", flush_redis, nothing),
    Fault("fill disk", fill_disk, lambda stack, _: stack.disks.free_artifacts(), 3.0, 10.0),
    Fault("fill postgres", fill_database_disk, lambda stack, _: stack.free_database_disk(), 2.0, 8.0, lacks_disk),
    Fault("deliver thrice", copy_messages, copy_again, 1.0, 4.0),
    Fault("take connections", take_connections, lambda stack, _: stack.give_back(), 2.0, 10.0),
    Fault("lock runs", lock_runs, lambda stack, _: stack.give_back(), 1.0, LEASE * 2),
    Fault("delay postgres", delay("to_postgres"), heal_proxy, 2.0, 6.0),
    Fault("cut postgres", cut("to_postgres"), heal_proxy, 0.05, 3.0),
    Fault("half-open postgres", half_open("to_postgres"), heal_proxy, 2.0, 12.0),
    Fault("delay redis", delay("to_redis"), heal_proxy, 2.0, 6.0),
    Fault("cut redis", cut("to_redis"), heal_proxy, 0.05, 3.0),
    Fault("half-open redis", half_open("to_redis"), heal_proxy, 2.0, 20.0),
    Fault("provider fails", provider, heal_provider, 1.0, 5.0),
)
LANES = (WORKERS, OTHERS, SERVERS)  # side by side; a part is in one of them alone
GAPS = (1.0, 4.0, 2.0)  # how long each lane pauses between two faults, so that work is done meanwhile
