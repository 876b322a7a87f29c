"""Claims of gates, further reviewers of one gate, times away with a delegate, and escalation to the next team."""
