"""The drill: kills an agent at every step, lets it recover, and compares the results with an undisturbed run.

A step is restartable if killing its worker costs nothing but time: its output depends only on its inputs, and an effect
happens once under one key. Nobody can see that in the code, so it is tested.

- Everything really happens: workers are forked processes, kills are SIGKILL, runs are rows of the configured
  database, effects are performed. The drill starts its own runs, titled "Drill: …", under a version of the agent
  that only this process knows, so that no worker of the installation takes them.
- Two undisturbed runs come first (`walk`, `record`). A plain step that gives two outputs on the same input is at fault;
  other differences between the two runs (a provider's ids, the clock) are not compared later.
- Then one run for each step and each of three moments (`exercise`): before the step, after it and before its save,
  after its save. One worker is killed there; another takes the run over once the lease has run out, and goes on to the
  end.
- `compare` compares status, path, state and effect ledger with the undisturbed run. The answer of an effect to a
  worker that then dies is written to a file (`children.Witness`), to compare it with the answer when it is sent again
  under its key.
"""
