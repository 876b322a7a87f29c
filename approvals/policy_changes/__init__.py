"""Changes of policies: what a change would have asked of the last gates, whether it is milder, and who confirms it.

A change that is milder than the version in force waits until a second person confirms it. So nobody alone lets more
through, neither in the administration nor by a file. A stricter one counts at once.
"""
