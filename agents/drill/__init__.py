"""The drill: kill an agent at every step, let it recover, and hold its end against an undisturbed run's.

A step is restartable where killing its worker changes nothing but time: what it writes follows from what it reads,
and an effect does the same thing once under one key. Nobody can see that in the code, so it is tried.

- Everything really happens: workers are forked processes, kills are SIGKILL, runs are rows of the configured
  database, effects are performed. Each run is one of the drill's own, titled "Drill: …", under a version of the
  agent that only this process knows, so that no worker of the installation takes it.
- Two undisturbed runs come first (`walk`, `record`). Where they differ on the same input a plain step is not
  determined by what it reads; what else differs between them (a provider's ids, the clock) is not compared.
- Then one run for each step and each of three moments (`aims`): before the step, after it and before its save, after
  its save. One worker goes there and is killed, another finds its lease run out and goes on to the end.
- `compare` holds status, path, state and effect ledger against the undisturbed run. What a worker was told by an
  effect before it died is written down outside the database (`witness`), so that an effect that is sent again under
  its key can be held to its first answer.
"""
