"""Vacuum what changes in place long before a fifth of it is dead, which in a table of years is months of updates."""

from django.db import migrations

TABLES = ["checkpoints_run", "checkpoints_hold"]
SOON = "autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02"
AS_EVER = "autovacuum_vacuum_scale_factor, autovacuum_analyze_scale_factor"


class Migration(migrations.Migration):
    atomic = False  # one table's lock at a time
    accepted = {"prefer-robust-stmts": "it can be set again"}
    dependencies = [("checkpoints", "0018_database_defaults")]

    operations = [
        migrations.RunSQL(f"ALTER TABLE {table} SET ({SOON})", f"ALTER TABLE {table} RESET ({AS_EVER})")
        for table in TABLES
    ]
