"""Tells people about gates: who has to hear of what, when, and by which channel.

A gate's event is its outbox row: it is committed with the change, so a gate costs no statement more for the people who
are told. A notifier reads events in the order of their commits, from a cursor that it keeps in the database, and writes
one notice for each person and channel, in the transaction that moves the cursor. Then it sends what is due. It may die
anywhere: what was read is written, and what is due is sent by the next one.
"""
