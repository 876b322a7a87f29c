import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0024_bulk_risk"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='BulkOrder',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=80)),
                ('verdict', models.CharField(choices=[('approve', 'Approved'), ('edit', 'Approved with an edit'), ('reject', 'Rejected'), ('answer', 'Answered'), ('mixed', 'Decided action by action')], max_length=8)),
                ('then', models.CharField(blank=True, default='', max_length=8)),
                ('comment', models.BinaryField()),
                ('request', models.BinaryField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('moved_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='BulkItem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('gate_id', models.BigIntegerField()),
                ('number', models.PositiveSmallIntegerField()),
                ('seen', models.BinaryField()),
                ('shown', models.TextField(blank=True, default='')),
                ('code', models.CharField(blank=True, db_default='', default='', max_length=40)),
                ('said', models.BinaryField(db_default=b'', default=b'')),
                ('order', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='approvals.bulkorder')),
            ],
        ),
        migrations.AddIndex(
            model_name='bulkorder',
            index=models.Index(models.F('created_at'), name='bulk_by_age'),
        ),
        migrations.AddConstraint(
            model_name='bulkorder',
            constraint=models.UniqueConstraint(fields=('user', 'key'), name='bulk_key_is_used_once'),
        ),
        migrations.AddConstraint(
            model_name='bulkitem',
            constraint=models.UniqueConstraint(fields=('order', 'gate_id'), name='one_bulk_item_per_gate'),
        ),
    ]
