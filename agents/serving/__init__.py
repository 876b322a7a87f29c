"""Whether workers serve an agent: announced by each of their processes, and shown where a run waits for one."""
