"""Parts shared by all addresses of the API: authentication, bodies, problems, keys, rates and waiting."""
