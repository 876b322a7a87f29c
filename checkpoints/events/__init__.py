"""Events: written with the change that they tell of, and read in an order that hides none."""
