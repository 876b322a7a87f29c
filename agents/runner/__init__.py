"""The runner: executes runs, applies the outcomes of gates, and upgrades runs to newer versions."""
