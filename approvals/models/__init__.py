from .decision import Decision
from .delivery import Attempt, Delivery
from .draft import Draft
from .gate import Gate
from .looking import Looking
from .outcome import Grant, Outcome
from .policy import Policy, ReviewingTeam
from .proposal import Proposal
from .receipt import Unrun
from .tool import Tool
from .upload import Upload
from .webhook import Webhook

__all__ = [
    "Attempt",
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
    "Tool",
    "Unrun",
    "Upload",
    "Webhook",
]
