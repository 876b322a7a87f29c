"""Threads of LangGraph graphs in the store: what a checkpointer puts, gets, lists and removes.

A namespace of a thread is one run of an external agent, with a plan that says no more than that a graph runs. A
checkpoint of the graph is a checkpoint of the run: its channels are the state's fields, and what LangGraph needs
beside them is the field `langgraph` (see holdpoint.langgraph.checkpointer). A run begins with an empty state, and a
deleted thread is one whose state is empty again: neither is a checkpoint of the graph.

The run's head is the graph's newest checkpoint. So a person who rewinds the run or edits its state changes what the
graph goes on from. Whoever puts says from which claim and head (`Seen`); if anybody else has written the run since,
the put is refused, and a new read begins anew.
"""
