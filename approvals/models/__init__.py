from .decision import Decision
from .delivery import Attempt, Delivery
from .draft import Draft
from .gate import Gate
from .looking import Looking
from .outcome import Grant, Outcome
from .policy import Policy, ReviewingTeam
from .proposal import Proposal
from .readers import AgentQuestion, GateVisit
from .tool import Tool
from .upload import Upload
from .webhook import Webhook

__all__ = [
    "AgentQuestion",
    "Attempt",
    "Decision",
    "Delivery",
    "Draft",
    "Gate",
    "GateVisit",
    "Grant",
    "Looking",
    "Outcome",
    "Policy",
    "Proposal",
    "ReviewingTeam",
    "Tool",
    "Upload",
    "Webhook",
]
