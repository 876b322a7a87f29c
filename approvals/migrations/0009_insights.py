from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("approvals", "0008_auto_sample")]

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
