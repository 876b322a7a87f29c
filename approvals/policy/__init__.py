"""The rules of policies: authority, quorum, separation of duties, step-up, pacing and second looks."""
