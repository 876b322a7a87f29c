import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0013_accounts")]

    operations = [
        migrations.AddField(
            model_name='policy',
            name='leaves',
            field=models.CharField(choices=[('number', "Only that something waits: the gate's number, its team and its deadline"), ('title', 'Its title too'), ('facts', "Its title and facts: amount, for whom, risk, and the actions' names"), ('all', 'All that the actions show, except for secrets')], db_default='title', default='title', max_length=6),
        ),
        migrations.AddField(
            model_name='policy',
            name='remind_before',
            field=models.DurationField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='policy',
            name='remind_share',
            field=models.PositiveSmallIntegerField(db_default=25, default=25, validators=[django.core.validators.MaxValueValidator(90)]),
        ),
    ]
