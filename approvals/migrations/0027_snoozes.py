import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0026_saved_views"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Snooze',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('until', models.DateTimeField()),
                ('gate', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='snoozes', to='approvals.gate')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', db_constraint=False, to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.AddConstraint(
            model_name='snooze',
            constraint=models.UniqueConstraint(fields=('user', 'gate'), name='one_snooze_per_person_and_gate'),
        ),
    ]
