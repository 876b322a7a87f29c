"""Read by a worker as a module of agents: one that takes nothing or stands still is known after seconds."""

from agents.serving import announcing, health_file

announcing.LOOK, announcing.PATIENCE, announcing.GRACE = 0.5, 3.0, 2.0
announcing.EVERY, announcing.STILL = 0.5, 2.0
health_file.EVERY = 0.5
