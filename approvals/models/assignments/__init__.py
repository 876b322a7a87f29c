"""The rows that say who is on a gate, who else may decide it, and who decides for somebody who is away."""
