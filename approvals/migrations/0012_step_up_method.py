from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0011_beside_indexes")]

    operations = [
        migrations.AddField(
            model_name="policy",
            name="step_up_method",
            field=models.CharField(
                choices=[("any", "Password, passkey or a code from an app"), ("passkey", "Passkey only")],
                db_default="any",
                default="any",
                max_length=8,
            ),
        ),
    ]
