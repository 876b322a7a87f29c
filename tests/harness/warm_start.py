"""Stands for a process that is forked from a warm one, where another program than the tests starts it.

`python -IS warm_start.py SOCKET WORDS …` has the process of `python WORDS …` forked with its own files, variables and
folder, passes on signals, and ends as it ends; the process is killed where this one is.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence

PASSED_ON = (signal.SIGINT, signal.SIGTERM)


def ask(path: str, words: Sequence[str], env: Mapping[str, str], folder: str, files: Sequence[int]) -> socket.socket:
    """Ask for a process; its number and its exit code are a message each. It is killed if this is closed before."""
    asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    asking.connect(path)
    request = json.dumps({"words": list(words), "env": dict(env), "folder": folder})
    socket.send_fds(asking, [request.encode()], files)
    return asking


def main(path: str, *words: str) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # until there is somebody to pass them on to
    with ask(path, words, os.environ, os.getcwd(), [0, 1, 2]) as asked:
        pid = int(asked.recv(20))
        for number in PASSED_ON:
            signal.signal(number, lambda number, _: os.kill(pid, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        with open(os.devnull, "rb+") as nothing:  # whoever reads what it says learns of its end
            for file in range(3):
                os.dup2(nothing.fileno(), file)
        code = int(asked.recv(20))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
