"""Measures the same wait through DBOS: workflows that stop until a message comes. A process in its own environment:

    python -m benchmarks.peers.dbos_workflows starts URL COUNT AT_ONCE
    python -m benchmarks.peers.dbos_workflows words URL COUNT
    python -m benchmarks.peers.dbos_workflows whole URL COUNT AT_ONCE PROCESSES

`starts` starts COUNT waiting workflows in its own process, AT_ONCE at a time, which is the cheapest way:
{"each": [ms], "seconds": of all}. `words` sends a message to each of COUNT workflows of another process:
{"words": [ms from sending it until the workflow has it]}. `whole` runs COUNT workflows of two steps, a message and a
step in PROCESSES other processes, AT_ONCE at a time, and sends each its message once it asks: {"seconds": of all}.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dbos import DBOS, DBOSClient, SetWorkflowID

TOPIC = "outcome"
CARD = {"title": "Wire 120.00", "actions": [{"id": "wire", "arguments": {"to": "ACME", "amount": "120.00"}}]}
SETTLE, PAUSE = 1.0, 0.02  # seconds


@DBOS.workflow()  # type: ignore[untyped-decorator]
def ask(number: int, card: dict[str, Any]) -> int:
    """Wait for a message, and print when it came."""
    sent = DBOS.recv(TOPIC, timeout_seconds=600)
    print(json.dumps([time.monotonic_ns(), sent]), flush=True)
    return number


def launch(url: str) -> None:
    """Start running workflows on this database."""
    logging.getLogger("dbos").setLevel(logging.ERROR)
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "run_admin_server": False})
    DBOS.launch()


def start(number: int) -> float:
    """Start one workflow; return the milliseconds that it took."""
    began = time.perf_counter()
    with SetWorkflowID(f"w{number}"):
        DBOS.start_workflow(ask, number, CARD)
    return (time.perf_counter() - began) * 1000


def starts(url: str, count: int, at_once: int) -> dict[str, Any]:
    launch(url)
    start(-1)
    began = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        each = list(pool.map(start, range(count)))
    return {"each": each, "seconds": time.perf_counter() - began}


def work(url: str, count: int) -> dict[str, Any]:
    """Run the other process: its workflows wait, and each ends when it has its message."""
    launch(url)
    for number in range(count):
        start(number)
    time.sleep(SETTLE)
    print("ready", flush=True)
    sys.stdin.read()
    return {}


def words(url: str, count: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.peers.dbos_workflows", "work", url, str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as worker:
        if worker.stdout is None:
            raise RuntimeError("the worker says nothing")
        while worker.stdout.readline().strip() != "ready":
            pass
        client, found = DBOSClient(system_database_url=url), []
        for number in range(count):
            client.send(f"w{number}", time.monotonic_ns(), TOPIC)
            came, sent = json.loads(worker.stdout.readline())
            found.append((came - sent) / 1e6)
            time.sleep(PAUSE)
        worker.kill()
    return {"words": found}


@DBOS.step()  # type: ignore[untyped-decorator]
def work_on(state: dict[str, Any], field: str) -> dict[str, Any]:
    """Return the state with one field more."""
    return {**state, field: len(state)}


@DBOS.workflow()  # type: ignore[untyped-decorator]
def errand(number: int) -> dict[str, Any]:
    """Take two steps, ask and wait for the answer, and take another step."""
    state = work_on(work_on(CARD, "looked"), "proposed")
    sys.stdout.write(f"{number}\n")  # in one piece: print writes twice, and threads get in between
    sys.stdout.flush()
    paid: dict[str, Any] = work_on({**state, "answer": DBOS.recv(TOPIC, timeout_seconds=600)}, "paid")
    return paid


def errands(url: str, first: int, count: int, at_once: int) -> dict[str, Any]:
    """Run `count` errands in this process, `at_once` at a time."""
    launch(url)

    def run(number: int) -> None:
        with SetWorkflowID(f"e{number}"):
            DBOS.start_workflow(errand, number).get_result()

    print("ready", flush=True)
    sys.stdin.readline()
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(run, range(first, first + count)))
    return {}


def whole(url: str, count: int, at_once: int, processes: int) -> dict[str, Any]:
    launch(url)  # makes the tables before the others look for them
    client, each = DBOSClient(system_database_url=url), count // processes

    def begun(number: int) -> subprocess.Popen[str]:
        numbers = [str(number * each), str(each), str(at_once // processes)]
        command = [sys.executable, "-m", "benchmarks.peers.dbos_workflows", "errands", url, *numbers]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)

    def attend(worker: subprocess.Popen[str]) -> None:
        for line in worker.stdout or ():
            if line.strip().isdigit():
                client.send(f"e{line.strip()}", "approved", TOPIC)

    workers = [begun(number) for number in range(processes)]
    for worker in workers:
        while worker.stdout and worker.stdout.readline().strip() != "ready":
            pass
    began = time.perf_counter()
    with ThreadPoolExecutor(processes) as pool:
        for worker in workers:
            print(file=worker.stdin, flush=True)
        list(pool.map(attend, workers))
    return {"seconds": time.perf_counter() - began}


if __name__ == "__main__":
    mode, url, *numbers = sys.argv[1:]
    modes: dict[str, Callable[..., dict[str, Any]]] = {
        "starts": starts, "words": words, "work": work, "errands": errands, "whole": whole
    }  # fmt: skip
    print(json.dumps(modes[mode](url, *map(int, numbers))), flush=True)
    os._exit(0)  # workflows that still wait would keep the process alive
