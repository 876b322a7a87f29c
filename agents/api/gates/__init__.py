"""Gates over the API: read and decided."""
