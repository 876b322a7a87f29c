"""External agents: programs elsewhere that work on runs over the API.

Their runs are runs like any other. A version registers its *plan* (plans), from which a class is made that has no
methods (states, declared); the same runner takes such a run as far as it can go by itself: it applies what was decided,
reuses what was recorded, settles what was left behind. Where it would call a method it *hands out* what is to be done
(remote_performer), and lets go of nothing: the program has the claim, and its answer is taken where the call would have
returned (turns, results). Whether it is still there is kept beside (the model Client).
"""
