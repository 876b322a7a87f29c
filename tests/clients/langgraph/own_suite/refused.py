"""The tests of LangGraph's own that do not pass with HoldpointSaver, each with the reason."""

# Nothing of the graph's schema names the class, and HoldpointSaver refuses it before it is saved: restored, it would be
# another type. docs/frameworks/langgraph.md tells authors to allow it.
NOT_ALLOWED = "keeps a class that neither the graph's schema nor `allow` names"
# A checkpoint's id is the key under which it is saved once, whichever agent's thread it is of. These save the ids that
# their synchronous twins saved before.
IDS_IN_USE = "saves the ids of another thread's checkpoints"
NOT_THE_SAVER = "fails with every checkpointer where `langchain` is installed: its version is in the messages' metadata"
REFUSED = {
    "test_checkpoint_migration.py::test_saved_checkpoint_state_graph_async[2-quadratic]": IDS_IN_USE,
    "test_checkpoint_migration.py::test_saved_checkpoint_state_graph_async[2-start:*]": IDS_IN_USE,
    "test_checkpoint_migration.py::test_saved_checkpoint_state_graph_async[3]": IDS_IN_USE,
    "test_interruption.py::test_interrupt_response_schema[dataclass]": NOT_ALLOWED,
    "test_interruption.py::test_interrupt_response_schema[pydantic]": NOT_ALLOWED,
    "test_interruption.py::test_interrupt_response_schema_invalid_resume_after_earlier_interrupt[id_map]": NOT_ALLOWED,
    "test_interruption.py::test_interrupt_response_schema_invalid_resume_after_earlier_interrupt[null]": NOT_ALLOWED,
    "test_interruption.py::test_interrupt_response_schema_rejects_invalid_resume[map]": NOT_ALLOWED,
    "test_interruption.py::test_interrupt_response_schema_rejects_invalid_resume[null]": NOT_ALLOWED,
    "test_large_cases.py::test_weather_subgraph": NOT_THE_SAVER,
    "test_large_cases_async.py::test_weather_subgraph": NOT_THE_SAVER,
}
