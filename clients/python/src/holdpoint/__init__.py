"""Ask people before your agent acts, and go on with exactly what they approved."""

from .answers import Begun, Event, Events, Gate, Outcome, Question, Signal, Signals, Turn
from .approvals import Approval, AsyncApproval, AsyncCalls, Calls, Pending
from .calls import AsyncCall, Call, Decision
from .client import AsyncHoldpoint, Holdpoint
from .endings import Said
from .errors import (
    AlreadyDone,
    Altered,
    Answered,
    BadAnswer,
    BadToken,
    CannotAsk,
    CannotResume,
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
    NotHandedOut,
    OutOfTurn,
    Problem,
    Refused,
    Rejected,
    ReportedBefore,
    RunEnded,
    StaleToken,
    StateTooLarge,
    StillOpen,
    Stopped,
    TooMany,
    ToTakeBack,
    Unknown,
    Unreachable,
    Withdrawn,
)
from .posting import Action, Ask, Card, Posting, Quote, Step, Write, question, question_each, thread
from .runs import AsyncRun, Run

__all__ = [
    "Action", "AlreadyDone", "Altered", "Answered", "Approval", "Ask", "AsyncApproval", "AsyncCall", "AsyncCalls",
    "AsyncHoldpoint", "AsyncRun", "BadAnswer", "BadToken", "Begun", "Call", "Calls", "CannotAsk", "CannotResume",
    "Card", "Decision", "Event", "Events", "Expired", "Gate", "Holdpoint", "HoldpointError", "Invalid", "KeyReused",
    "NoGrant", "NotAllowed", "NotClaimable", "NotConfigured", "NotDone", "NotFound", "NotHandedOut", "OutOfTurn",
    "Outcome", "Pending", "Posting", "Problem", "Question", "Quote", "Refused", "Rejected", "ReportedBefore", "Run",
    "RunEnded", "Said", "Signal", "Signals", "StaleToken", "StateTooLarge", "Step", "StillOpen", "Stopped",
    "ToTakeBack", "TooMany", "Turn", "Unknown", "Unreachable", "Withdrawn", "Write", "question", "question_each",
    "thread",
]  # fmt: skip
