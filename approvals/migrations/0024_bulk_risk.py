from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0023_visits")]

    operations = [
        migrations.AddField(
            model_name='policy',
            name='bulk_risk',
            field=models.CharField(choices=[('none', 'None: each gate is decided by itself'), ('low', 'Low risk'), ('medium', 'Low and medium risk')], db_default='low', default='low', help_text='Reviewers may decide several gates of one kind together from the inbox, if none has a higher risk. High and critical risk are always decided one by one.', max_length=6, verbose_name='decided together up to'),
        ),
    ]
