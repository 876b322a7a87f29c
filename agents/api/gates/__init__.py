"""Gates over the API: reading and deciding them."""
