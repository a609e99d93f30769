import django.db.models.deletion
from django.db import migrations, models

# Scripts without spaces between words: their runs are cut into pairs of characters.
RUN = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
# Letters, digits, and the marks that belong to the letter before them.
LETTER = r"[:alnum:]_\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff"

LEXEMES = rf"""
CREATE FUNCTION recall_lexemes(body text, language text) RETURNS text[] LANGUAGE sql STABLE PARALLEL SAFE AS $$
    WITH token AS (
        SELECT found[1] AS run, found[2] AS word
        FROM regexp_matches(
            lower(normalize(body, NFKC)), '([{RUN}]+)|((?:(?![{RUN}])[{LETTER}])+)', 'g'
        ) found
    )
    SELECT coalesce(array_agg(DISTINCT left(lexeme, 64)), '{{}}') FROM (
        SELECT unnest(ts_lexize(
            ('pg_catalog.' || CASE language WHEN 'simple' THEN language ELSE language || '_stem' END)::regdictionary,
            word
        )) AS lexeme FROM token WHERE word IS NOT NULL
        UNION ALL
        SELECT substr(run, place, 2) FROM token, generate_series(1, greatest(length(run) - 1, 1)) place
        WHERE run IS NOT NULL
    ) lexemes
$$
"""  # noqa: S608 - constants

# `chosen` is what the words of are wanted; inactive memories and those without a category have none.
FILL = """
    INSERT INTO recall_memoryword (memory_id, category_id, lexeme)
    SELECT m.id, m.category_id, lexeme
    FROM {chosen} m LEFT JOIN memories_account owner ON owner.id = m.owner_id,
        unnest(recall_lexemes(m.body, coalesce(owner.language, 'english'))) lexeme
    WHERE m.status = 'active' AND m.category_id IS NOT NULL
"""

IN_STEP = f"""
CREATE FUNCTION recall_new_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    {FILL.format(chosen="added")};
    RETURN NULL;
END $$;
CREATE TRIGGER recall_new_words
AFTER INSERT ON memories_memory REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION recall_new_words();

CREATE FUNCTION recall_changed_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM recall_memoryword WHERE memory_id = NEW.id;
    {FILL.format(chosen="(SELECT NEW.*)")};
    RETURN NULL;
END $$;
CREATE TRIGGER recall_changed_words
AFTER UPDATE OF body, category_id, status, owner_id ON memories_memory
FOR EACH ROW WHEN (
    (OLD.body, OLD.category_id, OLD.status, OLD.owner_id)
    IS DISTINCT FROM (NEW.body, NEW.category_id, NEW.status, NEW.owner_id)
)
EXECUTE FUNCTION recall_changed_words();

CREATE FUNCTION recall_changed_language() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Changes of these memories wait, and so see the new language.
    PERFORM FROM memories_memory WHERE owner_id = NEW.id ORDER BY id FOR NO KEY UPDATE;
    DELETE FROM recall_memoryword w USING memories_memory m WHERE m.id = w.memory_id AND m.owner_id = NEW.id;
    {FILL.format(chosen="memories_memory")} AND m.owner_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER recall_changed_language AFTER UPDATE OF language ON memories_account
FOR EACH ROW WHEN (OLD.language IS DISTINCT FROM NEW.language) EXECUTE FUNCTION recall_changed_language();
"""  # noqa: S608 - constants

DROP = """
DROP TRIGGER recall_changed_language ON memories_account;
DROP TRIGGER recall_changed_words ON memories_memory;
DROP TRIGGER recall_new_words ON memories_memory;
DROP FUNCTION recall_changed_language();
DROP FUNCTION recall_changed_words();
DROP FUNCTION recall_new_words();
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("memories", "0006_language_of_an_account"),
    ]

    operations = [
        migrations.CreateModel(
            name="MemoryWord",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "memory_id",
                        "lexeme",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("category_id", models.BigIntegerField()),
                ("lexeme", models.CharField(db_collation="C", max_length=64)),
                (
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="memories.memory",
                    ),
                ),
            ],
        ),
        migrations.RunSQL(LEXEMES, "DROP FUNCTION recall_lexemes(text, text)"),
        migrations.RunSQL(FILL.format(chosen="memories_memory"), migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name="memoryword",
            index=models.Index(
                fields=["category_id", "lexeme"], include=("memory",), name="word_by_category"
            ),
        ),
        migrations.RunSQL(IN_STEP, DROP),
    ]
