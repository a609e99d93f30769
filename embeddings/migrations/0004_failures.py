import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("embeddings", "0003_backfill"),
    ]

    operations = [
        migrations.CreateModel(
            name="FailureSequence",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "operation",
                    models.CharField(
                        choices=[
                            ("query", "embedding of a question"),
                            ("transport", "request for memories"),
                            ("refused", "text of a memory"),
                            ("write", "storing of a vector"),
                            ("corpus", "text of the search"),
                        ],
                        max_length=9,
                    ),
                ),
                ("account_id", models.BigIntegerField(default=0)),
                ("subject", models.CharField(blank=True, max_length=80)),
                ("count", models.PositiveIntegerField(default=1)),
                ("code", models.CharField(max_length=40)),
                ("first_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("last_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("reported_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "embedding failure",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("operation", "account_id", "subject"), name="one_sequence_per_operation"
                    )
                ],
            },
        ),
    ]
