"""External agents: programs elsewhere that work on runs over the API.

Their runs are runs like any other. A version registers its *plan* (plans), from which a class without methods is made
(plans.declared); the same engine takes such a run as far as it can by itself: it applies decisions, reuses recorded
results, settles what was left behind. Where it would call a method it *hands out* the work instead (session_cache)
and keeps the claim: the program holds it, and its answer is taken where the call would have returned (turns, results).
The model Client records whether the program is still present.
"""
