from django.db import migrations, models


def _column():
    return models.CharField(db_default="", default="", editable=False, max_length=32)


class Migration(migrations.Migration):
    dependencies = [("approvals", "0037_pushed_while_signed_in")]

    operations = [
        migrations.AddField("grant", "same_arguments", _column()),
        migrations.AddField("grant", "same_key", _column()),
        migrations.AddField("grant", "same_resource", _column()),
    ]
