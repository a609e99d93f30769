from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memories", "0004_memories_in_replies"),
    ]

    operations = [
        migrations.AddField(
            model_name="lease",
            name="session_began",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="lease",
            name="session_pid",
            field=models.IntegerField(blank=True, null=True),
        ),
    ]
