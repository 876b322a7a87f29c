"""Run the payment sandbox until Ctrl-C or SIGTERM."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from agents.examples import orders as refunds_orders

from .books import LedgerBroken
from .server import Sandbox


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m agents.examples.sandbox", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8001, help="0: any that is free")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the ledger")
    asked = parser.parse_args()
    try:
        server = Sandbox((asked.host, asked.port), asked.data)
    except (OSError, OverflowError, LedgerBroken) as error:
        sys.stderr.write(f"The payment sandbox cannot start on {asked.host}:{asked.port}: {error}\n")
        return 1
    try:
        for order in refunds_orders.read(refunds_orders.path()).values():
            server.bank.know(order.charge)
    except refunds_orders.OrdersRefused as error:
        sys.stderr.write(f"The shop's orders cannot be read, so that they have no charges yet: {error}\n")
    for name in (signal.SIGTERM, signal.SIGINT):
        # shutdown() waits for serve_forever, which this handler interrupts: it needs a thread of its own.
        signal.signal(name, lambda *_: threading.Thread(target=server.shutdown).start())
    sys.stdout.write(f"Payment sandbox on {server.url}/\n")
    sys.stdout.flush()
    server.serve_forever(poll_interval=0.1)
    server.server_close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
