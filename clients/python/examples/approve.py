"""Wires money once people have allowed it. Started with a gate's number it goes on from there."""

import sys

from holdpoint import Holdpoint

hp = Holdpoint()  # HOLDPOINT_URL and HOLDPOINT_TOKEN
payment = {"to": "ACME Ltd", "amount": "120.00"}
if len(sys.argv) > 1:
    gate = int(sys.argv[1])
else:
    pending = hp.approve.defer("wire", payment, title="Pay invoice 7")
    gate = pending.id
    print("gate", gate, "asks at", pending.url, flush=True)
with hp.resume(gate) as call:
    print("wiring", call.arguments["amount"], "under", call.key[:8])  # bank.wire(**call.arguments, key=call.key)
    call.done({"id": "tx_1"})
print("done;", *call.changes or ["as asked"])
