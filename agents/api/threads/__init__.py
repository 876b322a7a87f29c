"""The threads of LangGraph graphs: what a checkpointer in another program reads, saves and removes."""
