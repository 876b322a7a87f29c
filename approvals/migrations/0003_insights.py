from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("approvals", "0002_tokens_decide")]

    operations = [
        migrations.AlterModelOptions(
            name="gate",
            options={
                "permissions": [
                    ("decide_gate", "May decide gates"),
                    ("reveal_secret", "May reveal secrets"),
                    ("compare_people", "May see figures by person"),
                ]
            },
        ),
    ]
