"""Read by a worker as a module of agents: one that takes nothing is ended after seconds."""

from agents.serving import deafness

deafness.LOOK, deafness.PATIENCE, deafness.GRACE = 0.5, 3.0, 2.0
