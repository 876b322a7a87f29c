"""Ask people before your agent acts, and go on with exactly what they approved."""

from .answers import Begun, Event, Events, Gate, Outcome, Turn
from .approvals import Approval, AsyncApproval, AsyncCalls, Calls, Pending
from .calls import AsyncCall, Call, Decision
from .client import AsyncHoldpoint, Holdpoint
from .endings import Said
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
from .plans import Action, Card, Quote, Step, Write
from .posting import Ask, Posting, question, question_each, thread
from .runs import AsyncRun, Run

__all__ = [
    "Action", "AlreadyDone", "Answered", "Approval", "Ask", "AsyncApproval", "AsyncCall", "AsyncCalls",
    "AsyncHoldpoint", "AsyncRun", "BadAnswer", "BadToken", "Begun", "Call", "Calls", "Card", "Decision", "Event",
    "Events", "Expired", "Gate", "Holdpoint", "HoldpointError", "Invalid", "KeyReused", "NoGrant", "NotAllowed",
    "NotClaimable", "NotConfigured", "NotDone", "NotFound", "OutOfTurn", "Outcome", "Pending", "Posting", "Problem",
    "Quote", "Refused", "Rejected", "ReportedBefore", "Run", "RunEnded", "Said", "StaleToken", "Step", "StillOpen",
    "Stopped", "ToTakeBack", "TooMany", "Turn", "Unknown", "Unreachable", "Withdrawn", "Write", "question",
    "question_each", "thread",
]  # fmt: skip
