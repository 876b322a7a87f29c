"""What the release that is running knows: the last migration of each app in it, and the plans of its agents.

Whatever comes after must let that release's processes go on beside the new ones, and take on the runs that it began. A
release moves these marks on.
"""

from __future__ import annotations

RELEASED = {
    "checkpoints": "0001_initial",
    "approvals": "0001_initial",
    "agents": "0001_initial",
}
PLANS = {  # agent: (version, digest)
    "assistant": ("1", "016542fabfe60bac20333549ac6f80708d278207a597aecfb4d54a82e943df89"),
    "jobshop": ("1", "5dc11d88b4293e7c12418732b99bd591e6b4a369df52f8b5494400204ef07782"),
    "refunds": ("4", "2e7e52e5e649d194f47473586c9b2afde26bd8655e2e025b989983679259536b"),
    "restock": ("1", "8c42c292087bb0e1b2f1c8a0604289b4ddbf63c26c53e23747dd83ba6b0bbd1a"),
}
