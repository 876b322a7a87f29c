"""Taillard's generator of job shops, and the ten of 15 jobs on 15 machines that it makes from his published seeds.

É. Taillard, "Benchmarks for basic scheduling problems", European Journal of Operational Research 64 (1993) 278-285:
durations are uniform on [1, 99], each job visits every machine once in an order that is shuffled by transpositions,
and both come from the linear congruential generator of Bratley, Fox and Schrage, each with a seed of its own.
"""

from __future__ import annotations

from pathlib import Path

from agents.examples import jobshop
from agents.examples.jobshop.shop import Job, Shop

BUNDLED = Path(jobshop.__file__).with_name("instances")

# name: (seed of the durations, seed of the machines, shortest makespan known)
SEEDS = {
    "ta01": (840612802, 398197754, 1231),
    "ta02": (1314640371, 386720536, 1244),
    "ta03": (1227221349, 316176388, 1218),
    "ta04": (342269428, 1806358582, 1175),
    "ta05": (1603221416, 1501949241, 1224),
    "ta06": (1357584978, 1734077082, 1238),
    "ta07": (44531661, 1374316395, 1227),
    "ta08": (302545136, 2092186050, 1217),
    "ta09": (1153780144, 1393392374, 1274),
    "ta10": (73896786, 1544979948, 1241),
}
SIZE = 15


class Random:
    """X ← 16807 X mod (2^31 - 1), computed by Schrage's method without a product that overflows 31 bits."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def uniform(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        high_part, low_part = divmod(self.seed, 127_773)
        self.seed = 16_807 * low_part - 2_836 * high_part
        if self.seed < 0:
            self.seed += 2_147_483_647
        return low + int(self.seed / 2_147_483_647 * (high - low + 1))


def generate(name: str, *, jobs: int = SIZE, machines: int = SIZE) -> Shop:
    """The shop that a name's seeds make."""
    times, orders = map(Random, SEEDS[name][:2])
    durations = [[times.uniform(1, 99) for _ in range(machines)] for _ in range(jobs)]
    made: list[Job] = []
    for row in durations:
        order = list(range(machines))
        for at in range(machines):
            other = orders.uniform(at, machines - 1)
            order[at], order[other] = order[other], order[at]
        made.append(list(zip(order, row, strict=True)))
    return Shop(machines=machines, jobs=made)


def text_of(shop: Shop) -> str:
    """A shop in the standard form."""
    rows = ["  ".join(f"{machine:>2} {duration:>2}" for machine, duration in job) for job in shop.jobs]
    return "\n".join([f"{len(shop.jobs)} {shop.machines}", *rows]) + "\n"


def file_of(name: str) -> str:
    """One of the ten, with where it comes from in comments."""
    time_seed, machine_seed, best = SEEDS[name]
    return (
        f"# {name}: made by Taillard's generator from time seed {time_seed} and machine seed {machine_seed}.\n"
        f"# The shortest makespan known is {best}.\n{text_of(generate(name))}"
    )
