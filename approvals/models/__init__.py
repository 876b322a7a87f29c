from .decision import Decision
from .delivery import Attempt, Delivery
from .draft import Draft
from .gate import Gate
from .inbox import BulkItem, BulkOrder, SavedView, Snooze
from .looking import Looking
from .outcome import Grant, Outcome
from .policy import Policy, ReviewingTeam
from .proposal import Proposal
from .tool import Tool
from .upload import Upload
from .webhook import Webhook

__all__ = [
    "Attempt",
    "BulkItem",
    "BulkOrder",
    "Decision",
    "Delivery",
    "Draft",
    "Gate",
    "Grant",
    "Looking",
    "Outcome",
    "Policy",
    "Proposal",
    "ReviewingTeam",
    "SavedView",
    "Snooze",
    "Tool",
    "Upload",
    "Webhook",
]
