"""Runs of a framework's agent: its tool calls ask at one gate, and each approved call is an effect.

The adapters share this. One Holdpoint run is one run of the framework's agent, however often it asks: the framework's
own state is saved in it before it waits, so that any process goes on from there.
"""
