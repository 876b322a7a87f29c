"""Events: written in the transaction of the change that they record, and read in an order that misses none."""
