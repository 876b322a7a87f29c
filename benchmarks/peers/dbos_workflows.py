"""Measures the same wait through DBOS: workflows that stop until a message comes. A process in its own environment:

    python -m benchmarks.peers.dbos_workflows words|whole URL NUMBER...

`words COUNT` sends a message to each of the workflows of another process: {"words": [ms until the
workflow has it]}. `whole COUNT AT_ONCE PROCESSES` runs workflows of two steps, a message and a step in other processes,
and sends each its message once it asks: {"seconds": of all}.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dbos import DBOS, DBOSClient, SetWorkflowID

TOPIC = "outcome"
CARD = {"title": "Wire 120.00", "actions": [{"id": "wire", "arguments": {"to": "ACME", "amount": "120.00"}}]}
SETTLE, PAUSE = 1.0, 0.02  # seconds


def print_line(*values: Any) -> None:
    """Print JSON in one piece: print writes twice, and threads get in between."""
    sys.stdout.write(f"{json.dumps(values)}\n")
    sys.stdout.flush()


@DBOS.workflow()  # type: ignore[untyped-decorator]
def ask(number: int) -> int:
    """Wait for a message, and print when it came."""
    sent = DBOS.recv(TOPIC, timeout_seconds=600)
    print_line(time.monotonic_ns(), sent)
    return number


@DBOS.step()  # type: ignore[untyped-decorator]
def work_on(state: dict[str, Any], field: str) -> dict[str, Any]:
    """Return the state with one field more."""
    return {**state, field: len(state)}


@DBOS.workflow()  # type: ignore[untyped-decorator]
def errand(number: int) -> dict[str, Any]:
    """Take two steps, ask and wait for the answer, and take another step."""
    state = work_on(work_on(CARD, "looked"), "proposed")
    print_line(number)
    paid: dict[str, Any] = work_on({**state, "answer": DBOS.recv(TOPIC, timeout_seconds=600)}, "paid")
    return paid


def launch(url: str) -> None:
    logging.getLogger("dbos").setLevel(logging.ERROR)
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "run_admin_server": False})
    DBOS.launch()


def begin_process(mode: str, url: str, *numbers: int) -> subprocess.Popen[str]:
    """Start another process in this mode, and wait until it is ready."""
    command = [sys.executable, "-m", "benchmarks.peers.dbos_workflows", mode, url, *map(str, numbers)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    while process.stdout and process.stdout.readline().strip() != '["ready"]':
        pass
    return process


def work(url: str, count: int) -> None:
    """Run the other process: its workflows wait, and each ends when it has its message."""
    launch(url)
    for number in range(count):
        with SetWorkflowID(f"w{number}"):
            DBOS.start_workflow(ask, number)
    time.sleep(SETTLE)
    print_line("ready")
    sys.stdin.read()


def words(url: str, count: int) -> dict[str, Any]:
    worker, waits = begin_process("work", url, count), []
    client = DBOSClient(system_database_url=url)
    for number in range(count):
        client.send(f"w{number}", time.monotonic_ns(), TOPIC)
        came, sent = json.loads(worker.stdout.readline())  # type: ignore[union-attr]
        waits.append((came - sent) / 1e6)
        time.sleep(PAUSE)
    worker.kill()
    return {"words": waits}


def errands(url: str, first: int, count: int, at_once: int) -> None:
    """Run `count` errands in this process, `at_once` at a time."""
    launch(url)

    def run(number: int) -> None:
        with SetWorkflowID(f"e{number}"):
            DBOS.start_workflow(errand, number).get_result()

    print_line("ready")
    sys.stdin.readline()
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(run, range(first, first + count)))


def whole(url: str, count: int, at_once: int, processes: int) -> dict[str, Any]:
    launch(url)  # makes the tables before the others look for them
    client, share = DBOSClient(system_database_url=url), count // processes
    numbers = [(number * share, share, at_once // processes) for number in range(processes)]
    workers = [begin_process("errands", url, *given) for given in numbers]

    def attend(worker: subprocess.Popen[str]) -> None:
        print(file=worker.stdin, flush=True)
        for line in worker.stdout or ():
            client.send(f"e{json.loads(line)[0]}", "approved", TOPIC)

    began = time.perf_counter()
    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(attend, workers))
    return {"seconds": time.perf_counter() - began}


if __name__ == "__main__":
    mode, url, *given = sys.argv[1:]
    modes = {"words": words, "work": work, "errands": errands, "whole": whole}
    if result := modes[mode](url, *map(int, given)):  # type: ignore[operator]
        print(json.dumps(result), flush=True)
    os._exit(0)  # workflows that still wait would keep the process alive
