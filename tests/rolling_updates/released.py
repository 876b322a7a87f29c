"""What the release that is running knows: the last migration of each app in it.

Whatever comes after must let that release's processes go on beside the new ones. A release moves this mark on.
"""

from __future__ import annotations

RELEASED = {
    "checkpoints": "0016_prune_lines_that_agree",
    "approvals": "0019_flooding_and_fatigue",
    "agents": "0015_effect_version",
}
