from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="policy",
            name="tokens_decide",
            field=models.BooleanField(
                db_default=True,
                default=True,
                help_text="Reviewers may also decide by a token of their own with the scope gates:decide, as in a terminal or a script. Otherwise they decide only on the gate's page. An agent's token never decides.",
                verbose_name="API tokens may decide",
            ),
        ),
    ]
