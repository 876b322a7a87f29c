"""Whether a run can go on from a saved state: said before anybody decides over it, and looked at again as they do.

`checks` judges plain `facts`; `sources` gathers them, those about code from whoever has the agents' code.
"""
