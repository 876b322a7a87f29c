"""Read by a worker as a module of agents: one that takes nothing or stands still is known after seconds."""

from agents.serving import announcing, deaf_workers, health_file

deaf_workers.LOOK, deaf_workers.PATIENCE, deaf_workers.GRACE = 0.5, 3.0, 2.0
announcing.EVERY, announcing.STILL = 0.5, 2.0
health_file.EVERY = 0.5
