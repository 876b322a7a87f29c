"""Health checks: `/healthz`, `/readyz`, and the probe of each service."""
