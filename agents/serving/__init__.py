"""Whether workers serve an agent: announced by each of their processes, and told where a run waits for one."""
