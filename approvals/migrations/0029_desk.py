import approvals.models.assignments.calendar
import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models.functions import Now

ID = ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"))


def of_gate(name: str) -> models.Field:
    return models.OneToOneField("approvals.gate", on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name=name, serialize=False)


def of_user(name: str = "+", *, null: bool = False) -> models.Field:
    return models.ForeignKey(settings.AUTH_USER_MODEL, null=null, on_delete=django.db.models.deletion.CASCADE, related_name=name)


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0028_inbox_orders"),
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    accepted = {"several-tables": "The new tables name three: each is locked for an instant, and a wait ends at LOCK_TIMEOUT."}

    operations = [
        migrations.CreateModel(
            name="AddedTeam",
            fields=[
                ID,
                ("gate", models.ForeignKey("approvals.gate", on_delete=django.db.models.deletion.CASCADE, related_name="added")),
                ("team", models.ForeignKey("auth.group", on_delete=django.db.models.deletion.PROTECT, related_name="+")),
                ("level", models.PositiveSmallIntegerField(null=True)),
                ("by", models.CharField(max_length=120)),
                ("at", models.DateTimeField(db_default=Now())),
                ("open", models.BooleanField(db_default=True, default=True)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("gate", "team"), name="team_is_added_once")],
                "indexes": [models.Index(models.F("team"), models.F("gate"), condition=models.Q(("open", True)), name="added_open")],
            },
        ),
        migrations.CreateModel(
            name="Assignee",
            fields=[
                ("gate", of_gate("assignee")),
                ("user", of_user(null=True)),
                ("team", models.ForeignKey("auth.group", null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+")),
                ("by", models.CharField(max_length=120)),
                ("by_name", models.CharField(default="", max_length=150)),
                ("at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(models.Q(("team__isnull", False), ("user", None)), models.Q(("team", None), ("user__isnull", False)), _connector="OR"),
                        name="assignee_is_a_person_or_a_team",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Calendar",
            fields=[
                ID,
                ("team", models.ForeignKey("auth.group", on_delete=django.db.models.deletion.PROTECT, related_name="+")),
                ("name", models.SlugField(max_length=60)),
                ("zone", models.CharField(default="UTC", help_text="Such as Europe/Berlin.", max_length=60, verbose_name="time zone")),
                ("hours", models.JSONField(default=approvals.models.assignments.calendar.office_hours, verbose_name="working hours")),
                ("country", models.CharField(blank=True, default="", help_text="A country, such as DE, or DE-BY for a part of it. Empty: none.", max_length=8, verbose_name="public holidays of")),
                ("days_off", django.contrib.postgres.fields.ArrayField(base_field=models.DateField(), blank=True, db_default=[], default=list, size=None)),
                ("created_at", models.DateTimeField(db_default=Now())),
            ],
            options={"constraints": [models.UniqueConstraint(fields=("team", "name"), name="calendar_name_is_taken_once")]},
        ),
        migrations.CreateModel(
            name="GateClaim",
            fields=[
                ("gate", of_gate("claim")),
                ("user", of_user("claims")),
                ("since", models.DateTimeField(db_default=Now())),
                ("until", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Delegation",
            fields=[
                ID,
                ("person", of_user("delegations")),
                ("delegate", of_user(null=True)),
                ("starts_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                ("teams", django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), db_default=[], default=list, size=None)),
                ("policies", django.contrib.postgres.fields.ArrayField(base_field=models.SlugField(max_length=60), db_default=[], default=list, size=None)),
                ("made_at", models.DateTimeField(db_default=Now())),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("ends_at__gt", models.F("starts_at"))), name="delegation_ends_after_it_starts"),
                    models.CheckConstraint(
                        condition=models.Q(("delegate", None), models.Q(("delegate", models.F("person")), _negated=True), _connector="OR"),
                        name="delegate_is_somebody_else",
                    ),
                ],
                "indexes": [models.Index(models.F("person"), models.F("ends_at"), name="delegation_of_person")],
            },
        ),
        migrations.CreateModel(
            name="Escalation",
            fields=[
                ID,
                ("gate", models.ForeignKey("approvals.gate", on_delete=django.db.models.deletion.CASCADE, related_name="escalations")),
                ("number", models.PositiveSmallIntegerField()),
                ("team", models.ForeignKey("auth.group", on_delete=django.db.models.deletion.CASCADE, related_name="+")),
                ("due_at", models.DateTimeField(null=True)),
                ("extend", models.DurationField(null=True)),
                ("status", models.CharField(choices=[("planned", "Planned"), ("done", "Done"), ("dropped", "Not needed")], default="planned", max_length=7)),
                ("planned_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("gate", "number"), name="escalation_level_is_planned_once")],
                "indexes": [models.Index(models.F("due_at"), condition=models.Q(("due_at__isnull", False), ("status", "planned")), name="escalation_due")],
            },
        ),
        migrations.AlterModelOptions(
            name="gate",
            options={"permissions": [("decide_gate", "May decide gates"), ("reveal_secret", "May reveal secrets"), ("compare_people", "May see figures by person"), ("add_reviewers", "May add teams to the reviewers of a gate")]},
        ),
    ]
