import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("approvals", "0030_desk_policy"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    "ALTER TABLE approvals_decision ADD COLUMN IF NOT EXISTS on_behalf_of_id integer",
                    "ALTER TABLE approvals_decision DROP COLUMN IF EXISTS on_behalf_of_id",
                ),
                migrations.RunSQL(
                    "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS authority_is_lent_once_per_proposal "
                    "ON approvals_decision (proposal_id, on_behalf_of_id) WHERE counts AND on_behalf_of_id IS NOT NULL",
                    "DROP INDEX CONCURRENTLY IF EXISTS authority_is_lent_once_per_proposal",
                ),
            ],
            [
                migrations.AddField("decision", "on_behalf_of", models.ForeignKey(settings.AUTH_USER_MODEL, db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+")),
                migrations.AddConstraint("decision", models.UniqueConstraint(condition=models.Q(("counts", True), ("on_behalf_of__isnull", False)), fields=("proposal", "on_behalf_of"), name="authority_is_lent_once_per_proposal")),
            ],
        )
    ]
