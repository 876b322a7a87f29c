"""What every address of the API shares: who asks, bodies, problems, keys, rates and waiting."""
