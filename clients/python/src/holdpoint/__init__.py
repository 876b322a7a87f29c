"""Ask people before your agent acts, and go on with exactly what they allowed."""

from .answers import Begun, Event, Events, Gate, Outcome, Turn
from .approvals import Approval, AsyncApproval, Pending
from .calls import AsyncCall, Call, Decision
from .client import AsyncHoldpoint, Holdpoint
from .errors import (
    AlreadyDone,
    Answered,
    BadAnswer,
    BadToken,
    Expired,
    HoldpointError,
    Invalid,
    KeyReused,
    NoGrant,
    NotAllowed,
    NotClaimable,
    NotConfigured,
    NotDone,
    NotFound,
    OutOfTurn,
    Problem,
    Refused,
    Rejected,
    ReportedBefore,
    RunEnded,
    StaleToken,
    StillOpen,
    Stopped,
    TooMany,
    ToTakeBack,
    Unknown,
    Unreachable,
    Withdrawn,
)
from .plans import Action, Card, Step, Write
from .runs import AsyncRun, Run

__all__ = [
    "Action", "AlreadyDone", "Answered", "Approval", "AsyncApproval", "AsyncCall", "AsyncHoldpoint", "AsyncRun",
    "BadAnswer", "BadToken", "Begun", "Call", "Card", "Decision", "Event", "Events", "Expired", "Gate", "Holdpoint",
    "HoldpointError", "Invalid", "KeyReused", "NoGrant", "NotAllowed", "NotClaimable", "NotConfigured", "NotDone",
    "NotFound", "OutOfTurn", "Outcome", "Pending", "Problem", "Refused", "Rejected", "ReportedBefore", "Run",
    "RunEnded", "StaleToken", "Step", "StillOpen", "Stopped", "ToTakeBack", "TooMany", "Turn", "Unknown",
    "Unreachable", "Withdrawn", "Write",
]  # fmt: skip
