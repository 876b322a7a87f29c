"""Executes steps: calls, retries, repair of refused outputs, and the questions to a person after a failure."""
