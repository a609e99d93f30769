import django.db.models.deletion
import django.utils.timezone
import pgvector.django.halfvec
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("embeddings", "0004_failures"),
    ]

    operations = [
        migrations.CreateModel(
            name="CorpusDigest",
            fields=[
                ("corpus", models.CharField(max_length=20, primary_key=True, serialize=False)),
                ("digest", models.BinaryField(max_length=32)),
                ("verified_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="CorpusVector",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("corpus", models.CharField(max_length=20)),
                ("text_hash", models.BinaryField(max_length=32)),
                ("vec", pgvector.django.halfvec.HalfVectorField()),
                (
                    "space",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="embeddings.embeddingspace",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("corpus", "space", "text_hash"), name="one_vector_per_text"
                    )
                ],
            },
        ),
    ]
