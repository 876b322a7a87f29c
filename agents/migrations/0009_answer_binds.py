from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0008_graph_threads")]

    operations = [migrations.AddField("answer", "binds", models.BinaryField(null=True))]
