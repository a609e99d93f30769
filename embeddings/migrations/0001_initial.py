import django.db.models.deletion
import django.db.models.lookups
import django.utils.timezone
import pgvector.django.halfvec
from django.db import migrations, models
from pgvector.django import VectorExtension

# Vectors stay in the row: out of line, every recall would cost three times as much. Set before any row exists.
INLINE = "ALTER TABLE embeddings_memoryembedding SET (toast_tuple_target = 8160)"

# What a recall filters by is copied into the vector's row, so that the scan needs no join.
IN_STEP = """
CREATE FUNCTION embeddings_keep_in_step() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE embeddings_memoryembedding
    SET account_id = NEW.owner_id,
        category_id = CASE WHEN NEW.status = 'active' THEN NEW.category_id END
    WHERE memory_id = NEW.id;
    UPDATE embeddings_pendingmemory SET account_id = coalesce(NEW.owner_id, 0)
    WHERE memory_id = NEW.id AND account_id <> coalesce(NEW.owner_id, 0);
    RETURN NULL;
END $$;
CREATE TRIGGER embeddings_keep_in_step
AFTER UPDATE OF owner_id, category_id, status ON memories_memory
FOR EACH ROW WHEN (
    (OLD.owner_id, OLD.category_id, OLD.status) IS DISTINCT FROM (NEW.owner_id, NEW.category_id, NEW.status)
)
EXECUTE FUNCTION embeddings_keep_in_step();
"""
DROP_IN_STEP = """
DROP TRIGGER embeddings_keep_in_step ON memories_memory;
DROP FUNCTION embeddings_keep_in_step();
"""

# A changed body is a new chance for a text that was refused, hence no attempts.
BECOMES_PENDING = """
CREATE FUNCTION embeddings_new_is_pending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO embeddings_pendingmemory (memory_id, account_id, attempts, next_at)
    SELECT id, coalesce(owner_id, 0), 0, now() FROM added WHERE status = 'active' ORDER BY id;
    RETURN NULL;
END $$;
CREATE TRIGGER embeddings_new_is_pending
AFTER INSERT ON memories_memory REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION embeddings_new_is_pending();

CREATE FUNCTION embeddings_changed_is_pending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO embeddings_pendingmemory (memory_id, account_id, attempts, next_at)
    VALUES (NEW.id, coalesce(NEW.owner_id, 0), 0, now())
    ON CONFLICT (memory_id) DO UPDATE
    SET account_id = excluded.account_id, attempts = 0, next_at = excluded.next_at;
    RETURN NULL;
END $$;
CREATE TRIGGER embeddings_changed_is_pending
AFTER UPDATE OF body, status ON memories_memory
FOR EACH ROW WHEN (
    NEW.status = 'active' AND (OLD.body IS DISTINCT FROM NEW.body OR OLD.status <> 'active')
)
EXECUTE FUNCTION embeddings_changed_is_pending();
"""
DROP_BECOMES_PENDING = """
DROP TRIGGER embeddings_changed_is_pending ON memories_memory;
DROP FUNCTION embeddings_changed_is_pending();
DROP TRIGGER embeddings_new_is_pending ON memories_memory;
DROP FUNCTION embeddings_new_is_pending();
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("memories", "0002_ten_levels_of_importance"),
    ]

    operations = [
        VectorExtension(),
        migrations.CreateModel(
            name="EmbeddingSpace",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("provider", models.CharField(max_length=20)),
                ("endpoint_hash", models.BinaryField(max_length=32)),
                ("model", models.CharField(max_length=200)),
                ("width", models.PositiveIntegerField(null=True)),
                ("dims", models.PositiveIntegerField(null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("provider", "endpoint_hash", "model", "width"),
                        name="one_row_per_space",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PendingMemory",
            fields=[
                (
                    "memory",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="pending",
                        serialize=False,
                        to="memories.memory",
                    ),
                ),
                ("account_id", models.BigIntegerField()),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("next_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "verbose_name_plural": "pending memories",
                "indexes": [models.Index(fields=["account_id", "next_at", "memory"], name="pending_by_turn")],
            },
        ),
        migrations.CreateModel(
            name="MemoryEmbedding",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "memory_id", "space_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("account_id", models.BigIntegerField(null=True)),
                ("category_id", models.BigIntegerField(null=True)),
                ("body_hash", models.BinaryField(max_length=32)),
                ("vec", pgvector.django.halfvec.HalfVectorField()),
                (
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="embeddings",
                        to="memories.memory",
                    ),
                ),
                (
                    "space",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="embeddings",
                        to="embeddings.embeddingspace",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["space", "category_id"], name="embedding_by_category"),
                    models.Index(fields=["space", "account_id"], name="embedding_by_account"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            django.db.models.lookups.GreaterThan(
                                models.Func(
                                    models.F("vec"), function="l2_norm", output_field=models.FloatField()
                                ),
                                0.0,
                            )
                        ),
                        name="vector_not_zero",
                    )
                ],
            },
        ),
        migrations.RunSQL(INLINE, "ALTER TABLE embeddings_memoryembedding RESET (toast_tuple_target)"),
        migrations.RunSQL(IN_STEP, DROP_IN_STEP),
        migrations.RunSQL(BECOMES_PENDING, DROP_BECOMES_PENDING),
    ]
