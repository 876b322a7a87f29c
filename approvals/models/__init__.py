from .account import Profile, SignedIn
from .assignments.calendar import Calendar
from .assignments.claim import Escalation, GateClaim
from .assignments.reviewers import AddedTeam, Assignee, Delegation, LentPolicy, LentTeam
from .decision import Decision
from .draft import Draft
from .gate import Gate
from .inbox import BulkItem, BulkOrder, SavedView, Snooze
from .looking import Looking
from .notifications import ChannelAddress, ChannelState, Message, MessageAttempt, NoticeCursor, NotificationPreference
from .outcome import Grant, Outcome
from .policy import Policy, ReviewingTeam
from .policy_change import PolicyChange
from .proposal import Proposal
from .readers import AgentQuestion, GateVisit
from .receipt import Unrun
from .receipt.unrun import OwedSample, take_owed_sample
from .tool import Tool
from .upload import Upload
from .webhook import Webhook

__all__ = [
    "AddedTeam", "AgentQuestion", "Assignee", "BulkItem", "BulkOrder", "Calendar", "ChannelAddress", "ChannelState",
    "Decision", "Delegation", "Draft", "Escalation", "Gate", "GateClaim", "GateVisit", "Grant", "LentPolicy",
    "LentTeam", "Looking", "Message", "MessageAttempt", "NoticeCursor", "NotificationPreference", "Outcome",
    "OwedSample", "Policy", "PolicyChange", "Profile", "Proposal", "ReviewingTeam", "SavedView", "SignedIn", "Snooze",
    "Tool", "Unrun", "Upload", "Webhook", "take_owed_sample",
]  # fmt: skip
