import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

# What somebody writes is new, even if it was waiting as part of a backfill.
CHANGED = """
CREATE OR REPLACE FUNCTION embeddings_changed_is_pending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO embeddings_pendingmemory (memory_id, account_id, attempts, next_at)
    VALUES (NEW.id, coalesce(NEW.owner_id, 0), 0, now())
    ON CONFLICT (memory_id) DO UPDATE
    SET account_id = excluded.account_id, attempts = 0, next_at = excluded.next_at{fresh};
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("embeddings", "0002_connections"),
    ]

    operations = [
        migrations.AddField(
            model_name="embeddingspace",
            name="held_until",
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name="Reindex",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "space",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="embeddings.embeddingspace",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("stopped", "stopped by an administrator"),
                            ("done", "Done"),
                            ("superseded", "superseded by another change"),
                        ],
                        default="running",
                        max_length=10,
                    ),
                ),
                ("total", models.PositiveIntegerField()),
                ("asked_by", models.CharField(blank=True, max_length=40)),
                ("stopped_by", models.CharField(blank=True, max_length=40)),
                ("started_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "reindexing",
                "constraints": [
                    models.UniqueConstraint(
                        models.Value(1),
                        condition=models.Q(("state__in", ["running", "stopped"])),
                        name="one_open_reindex",
                    )
                ],
            },
        ),
        migrations.RemoveIndex(model_name="pendingmemory", name="pending_by_turn"),
        migrations.AddField(
            model_name="pendingmemory",
            name="backfill",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddIndex(
            model_name="pendingmemory",
            index=models.Index(
                fields=["account_id", "backfill", "next_at", "memory"], name="pending_by_turn"
            ),
        ),
        migrations.AddIndex(
            model_name="pendingmemory",
            index=models.Index(
                condition=models.Q(("backfill", True)), fields=["attempts"], name="backfill_left"
            ),
        ),
        migrations.RunSQL(CHANGED.format(fresh=",\n        backfill = false"), CHANGED.format(fresh="")),
    ]
