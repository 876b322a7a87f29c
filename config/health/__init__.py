"""Health: what `/healthz` and `/readyz` answer, and the probe of each service."""
