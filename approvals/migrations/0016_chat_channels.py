from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("approvals", "0015_notifications")]

    operations = [
        migrations.AlterModelOptions(name="channeladdress", options={"verbose_name": "chat channel"}),
    ]
