"""What the release that is running knows: the last migration of each app in it, and the plans of its agents.

Whatever comes after must let that release's processes go on beside the new ones, and take on the runs that it began. A
release moves these marks on.
"""

from __future__ import annotations

RELEASED = {
    "checkpoints": "0016_prune_lines_that_agree",
    "approvals": "0019_flooding_and_fatigue",
    "agents": "0015_effect_version",
}
PLANS = {  # agent: (version, digest)
    "assistant": ("1", "016542fabfe60bac20333549ac6f80708d278207a597aecfb4d54a82e943df89"),
    "jobshop": ("1", "08bf22b7bafd3af297b1ed99fcba30294933b63ea9401b5bc35bcc4063b9cd80"),
    "refunds": ("3", "8ff77d74112212d526d24f32904f327995fe2063b27968c8b44aa257895af239"),
    "restock": ("1", "8c42c292087bb0e1b2f1c8a0604289b4ddbf63c26c53e23747dd83ba6b0bbd1a"),
}
