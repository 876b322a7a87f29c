"""Questions that people ask an agent at an open gate: whether it answers, and having it answer in a worker."""
