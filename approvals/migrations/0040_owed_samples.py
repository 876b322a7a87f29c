import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0039_likeness_indexes"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.CreateModel(
            name='OwedSample',
            fields=[
                ('gate', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='approvals.gate')),
                ('policy', models.CharField(max_length=60)),
                ('agent', models.CharField(max_length=100)),
                ('team', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='auth.group')),
            ],
            options={
                'indexes': [models.Index(fields=['team', 'policy', 'agent', 'gate'], name='owed_sample_alike')],
            },
        ),
    ]
