"""The runner: takes a run as far as it goes, applies outcomes, and migrates runs to newer versions."""
