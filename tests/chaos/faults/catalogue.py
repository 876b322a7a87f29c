"""The faults: each begins and, after a while, is healed."""

from __future__ import annotations

from dataclasses import dataclass

from checkpoints import crash_points

from ..installation.stack import LEASE, Stack
from . import breaking as by


@dataclass(frozen=True)
class Fault:
    """One kind. `least` and `most`: seconds between its beginning and its healing. `heal` gets what `begin` said.

    `lacks` says what it would take that is not on this machine: then it is left out, and the campaign says so.
    """

    name: str
    begin: by.Begin
    heal: by.Heal
    least: float = 0.2
    most: float = 2.0
    lacks: by.Lacks = lambda stack: ""  # why this machine cannot have it


OF_WORKERS = tuple(
    point
    for points in (
        crash_points.POINTS, crash_points.OF_WAITS, crash_points.OF_CHILDREN, crash_points.OF_MID_STEP,
        crash_points.OF_HELD, crash_points.OF_DEFERRED, crash_points.OF_ORDERS, crash_points.OF_BESIDE,
    )
    for point in points
    if point not in by.OF_PEOPLE
)  # fmt: skip
OF_SWEEPERS = (*(crash_points.OF_TIMERS,) * 2, *crash_points.OF_ORDERS)  # it passes the first most often
WORKERS = (
    Fault("kill worker", by.kill(by.worker), by.run_again, 0.2, 3.0),
    Fault("kill child", by.kill_child, by.nothing, 0.2, 1.0),
    Fault("pause worker", by.pause(by.worker), by.resume, LEASE + 1, LEASE * 3),
    Fault("restart worker", by.terminate(by.worker), by.run_again, 0.5, 4.0),
    Fault("crash worker", by.crash(OF_WORKERS, by.worker), by.run_again, 14.0, 20.0),
    Fault("wrong clock", by.wrong_clock(by.worker), by.run_again, 6.0, 12.0, by.lacks_library),
    Fault("crash worker too", by.crash(OF_WORKERS, by.worker), by.run_again, 14.0, 20.0),
    Fault("crash worker once more", by.crash(OF_WORKERS, by.worker), by.run_again, 14.0, 20.0),
)
OTHERS = (
    Fault("crash web", by.crash(by.OF_PEOPLE, by.always("web")), by.run_again, 10.0, 14.0),
    Fault("crash sweeper", by.crash(OF_SWEEPERS, by.always("sweeper")), by.run_again, 10.0, 14.0),
    Fault("kill sweeper", by.kill(by.always("sweeper")), by.run_again, 1.0, 8.0),
    Fault("pause sweeper", by.pause(by.always("sweeper")), by.resume, 2.0, 8.0),
    Fault("two sweepers", by.to_stack(lambda stack: stack.run("spare"), "spare"), by.drop, 3.0, 8.0),
    Fault("kill beat", by.kill(by.always("beat")), by.run_again, 1.0, 5.0),
    Fault("pause beat", by.pause(by.always("beat")), by.resume, 2.0, 8.0),
    Fault("kill web", by.kill(by.always("web")), by.run_again, 0.2, 4.0),
    Fault("pause web", by.pause(by.always("web")), by.resume, 1.0, 6.0),
    Fault("restart web", by.terminate(by.always("web")), by.run_again, 0.5, 4.0),
    Fault("wrong clock elsewhere", by.wrong_clock(by.elsewhere), by.run_again, 5.0, 10.0, by.lacks_library),
    Fault("kill program", by.kill(by.always("program")), by.run_again, 0.2, 3.0),
    Fault("kill provider", by.kill(by.always("sandbox")), by.run_again, 0.5, 4.0),
)
SERVERS = (
    Fault("stop postgres", by.to_stack(Stack.stop_postgres, "immediate"), by.healed(Stack.start_postgres), 0.5, 6.0),
    Fault("kill redis", by.to_stack(Stack.kill_redis, "killed"), by.healed(Stack.start_redis), 0.5, 15.0),
    Fault("redis away", by.to_stack(Stack.kill_redis, "killed"), by.healed(Stack.start_redis), 60.0, 65.0),
    Fault("flush redis", by.to_stack(Stack.flush_redis, "flushed"), by.nothing),
    Fault("fill disk", by.fill_artifacts, by.free_artifacts, 3.0, 10.0),
    Fault("fill postgres", by.fill_database, by.healed(Stack.free_database_disk), 2.0, 8.0, by.lacks_disk),
    Fault("deliver thrice", by.to_stack(Stack.copy_messages, "{} copied"), by.copy_again, 1.0, 4.0),
    Fault("take connections", by.to_stack(Stack.take_connections, "{} taken"), by.healed(Stack.give_back), 2.0, 10.0),
    Fault("lock runs", by.lock_runs, by.healed(Stack.give_back), 1.0, LEASE * 2),
    Fault("delay postgres", by.to_proxy("to_postgres", by.delay), by.heal_proxy, 2.0, 6.0),
    Fault("cut postgres", by.to_proxy("to_postgres", by.cut), by.heal_proxy, 0.05, 3.0),
    Fault("half-open postgres", by.to_proxy("to_postgres", by.half_open), by.heal_proxy, 2.0, 12.0),
    Fault("delay redis", by.to_proxy("to_redis", by.delay), by.heal_proxy, 2.0, 6.0),
    Fault("cut redis", by.to_proxy("to_redis", by.cut), by.heal_proxy, 0.05, 3.0),
    Fault("half-open redis", by.to_proxy("to_redis", by.half_open), by.heal_proxy, 2.0, 20.0),
    Fault("provider fails", by.provider, by.heal_provider, 1.0, 5.0),
)
LANES = (WORKERS, OTHERS, SERVERS)  # side by side; a part is in one of them alone
GAPS = (1.0, 4.0, 2.0)  # how long each lane pauses between two faults, so that work is done meanwhile
