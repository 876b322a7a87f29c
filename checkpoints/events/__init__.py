"""Events across servers and transactions: how far they may be read, and by which numbers."""
