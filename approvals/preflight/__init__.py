"""Checks whether a run can go on from a saved state: shown before a decision, and checked again with it.

`checks` judges plain `facts`, which `approvals.gates.preflight_facts` gathers.
"""
