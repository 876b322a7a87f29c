"""The migrations of a release that is still to come, as an app of its own: what a rolling update has to do."""
