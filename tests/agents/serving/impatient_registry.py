"""Read by a worker as a module of agents: one that takes nothing or stands still is known after seconds."""

from agents.serving import announcing, deafness

deafness.LOOK, deafness.PATIENCE, deafness.GRACE = 0.5, 3.0, 2.0
announcing.EVERY, announcing.STILL = 0.5, 2.0
