"""The restock example."""
