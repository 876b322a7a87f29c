"""Messages to pages that are no events: a number through Redis that says only what to read again.

The rows of each kind are in PostgreSQL, and a page reads them whenever it is drawn. So an outage of Redis delays them
and loses nothing, and whoever can publish learns and changes nothing.
"""

from __future__ import annotations

from channels.layers import get_channel_layer
from django.contrib.auth.models import User

from approvals.models import GateVisit, Looking
from checkpoints.events import wakeup

DIGITS = 19  # of the largest number
# Kind -> (the group of pages that hear of it, without the number; the method of approvals.live.consumer).
LOOKING, SPOKEN = "looking", "spoken"
KINDS = {LOOKING: ("gate", "looked"), SPOKEN: ("run", "spoke")}


def channel(kind: str) -> str:
    """Return the channel's name; see checkpoints.events.wakeup."""
    return f"{wakeup.channel()}.{kind}"


def whisper(kind: str, number: int) -> None:
    """Send a number to the pages of every web process. Never raises."""
    wakeup.publish(channel(kind), str(number))


async def tell() -> None:
    """Pass messages on to the pages of this process, until cancelled; reconnects after each loss of the connection."""
    await wakeup.listen(*map(channel, KINDS), hear=hand_on, deaf="whispers.deaf")


async def hand_on(message: dict[str, object]) -> None:
    """Pass one message of Redis on to its pages; ignore anything else."""
    said, where, layer = message.get("data"), message.get("channel"), get_channel_layer()
    if message.get("type") != "message" or not isinstance(said, bytes) or not isinstance(where, bytes) or layer is None:
        return
    kind = where.decode(errors="replace").rpartition(".")[2]
    if kind not in KINDS or not said.isdigit() or len(said) > DIGITS:  # a bad message must not end the listening
        return
    group, method = KINDS[kind]
    await layer.group_send(f"{group}.{int(said)}", {"type": method, "number": int(said)})


def look(socket: str, gate_id: int, *, by: User, proposal: int = 0) -> None:
    """Record that a socket's page has this gate in sight, which tells others: a courtesy, so without an event.

    The caller has checked that the person may see it.

    `proposal`: the version that it shows, where that is to be remembered as seen.
    """
    if proposal:
        GateVisit.objects.look(gate_id, by=by, proposal=proposal)
    for changed in Looking.objects.look(gate_id, by=by, socket=socket):
        whisper(LOOKING, changed)


def away(socket: str) -> None:
    """Record that the page has no gate in sight any more."""
    for changed in Looking.objects.away(socket):
        whisper(LOOKING, changed)
