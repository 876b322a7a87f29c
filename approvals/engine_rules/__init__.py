"""What the engine does next, as rules over plain rows: the runner acts by them, and the impact foretells by them.

Each rule stands here once, so that what a reviewer is shown before deciding is what then happens. The runner gives
rows of its tables, the impact its facts; both have the attributes that a rule's protocol names. Pure.
"""
