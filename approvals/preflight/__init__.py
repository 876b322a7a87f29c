"""Whether a run can go on from a saved state: shown before anybody decides, and checked again as they do.

`checks` judges plain `facts`; `sources` gathers them, those about code from whoever has the agents' code.
"""
