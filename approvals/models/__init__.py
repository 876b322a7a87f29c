from .assignments.calendar import Calendar
from .assignments.claim import GateClaim
from .assignments.delegation import Delegation, LentPolicy, LentTeam
from .assignments.escalation import Escalation
from .assignments.reviewers import AddedTeam, Assignee
from .decision import Decision
from .delivery import Attempt, Delivery
from .draft import Draft
from .gate import Gate
from .looking import Looking
from .outcome import Grant, Outcome
from .policy import Policy, ReviewingTeam
from .proposal import Proposal
from .tool import Tool
from .upload import Upload
from .webhook import Webhook

__all__ = [
    "AddedTeam",
    "Assignee",
    "Attempt",
    "Calendar",
    "Decision",
    "Delegation",
    "Delivery",
    "Draft",
    "Escalation",
    "Gate",
    "GateClaim",
    "Grant",
    "LentPolicy",
    "LentTeam",
    "Looking",
    "Outcome",
    "Policy",
    "Proposal",
    "ReviewingTeam",
    "Tool",
    "Upload",
    "Webhook",
]
