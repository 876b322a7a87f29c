"""Rules of the engine over plain rows: the runner acts by them, and the impact previews by them. Pure.

Each rule is written once, so that what a reviewer is shown before deciding is what then happens. The runner passes rows
of its tables, the impact its facts; both have the attributes that a rule's protocol names.
"""
