"""The undo window: taking one's decision back within it, and ending the gate after it."""
