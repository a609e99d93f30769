"""Retrieval edge by edge; that the whole is right on any store is for test_against_reference."""

import tempfile
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection, transaction
from django.db.transaction import TransactionManagementError
from django.utils import timezone

from elowen.lib.db import read_snapshot
from elowen.lib.errors import Unavailable
from elowen.lib.hashing import text_hash
from embeddings.embedding import embed_query
from embeddings.models import EmbeddingSpace, MemoryEmbedding
from embeddings.scoring import vector_cursor
from memories.models import Account, ConfigSection, Memory, MemoryUse
from recall import semantic
from recall.config import load_config
from recall.keyword import MEMORY_QUERY_CHARS
from recall.retrieval import Recall, Version, retrieve
from recall.scope import recall_scope
from recall.semantic import FIRST_STEP, SemanticQuery, Step
from tests.factories import CategoryFactory, MemoryFactory
from tests.fakes.server import FakeServer, Received, Reply, gives_vectors, refuses
from tests.plans import rows_handled
from tests.recall.conftest import Asks, SetLimits
from tests.recall.stores import index, remembers

pytestmark = pytest.mark.django_db


def recall(account: Account, query: str = "tea", **limits: Any) -> Recall:
    return retrieve(account=account, query=query, scope=recall_scope(account), **limits)


def ids(found: Recall) -> list[int]:
    return [one.memory.pk for one in found.memories]


@pytest.mark.parametrize("blank", ["", "   ", "\n\t \u2003"])
def test_a_blank_question_finds_nothing_and_asks_no_model(
    ada: Account, server: FakeServer, space: EmbeddingSpace, blank: str
) -> None:
    MemoryFactory.create(owner=ada)

    assert recall(ada, blank) == Recall([], "empty")
    assert server.requests == []


def test_only_the_first_characters_of_a_question_are_embedded(
    ada: Account, server: FakeServer, space: EmbeddingSpace
) -> None:
    MemoryFactory.create(owner=ada)

    recall(ada, f"  {'x' * MEMORY_QUERY_CHARS}never sent")

    assert server.requests[0].texts == ["x" * MEMORY_QUERY_CHARS]


def test_the_nearest_comes_first_with_its_score_and_similarity(
    ada: Account, space: EmbeddingSpace, question: Asks
) -> None:
    far = remembers(space, 3, 4, owner=ada, importance=1)
    near = remembers(space, 1, 0, owner=ada, importance=1)
    question(1, 0)

    found = recall(ada)

    assert (found.path, found.degraded, ids(found)) == ("semantic", False, [near.pk, far.pk])
    assert [one.similarity for one in found.memories] == pytest.approx([1, 0.6])
    assert found.memories[0].score == pytest.approx(0.8 + 0.1 * 0.5, abs=1e-3)
    assert found.memories[0].body_sha256 == text_hash(near.body).hex()


def test_a_cosine_of_exactly_the_floor_is_relevant(
    ada: Account, space: EmbeddingSpace, question: Asks, set_limits: SetLimits
) -> None:
    memory = remembers(space, 1, 1, 1, 1, owner=ada)
    question(1, 0, 0, 0)

    set_limits(memorySemanticFloorPerMille=500)
    assert ids(recall(ada)) == [memory.pk]
    set_limits(memorySemanticFloorPerMille=501)
    assert recall(ada).path == "empty"


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_among_equals_the_newer_comes_first(
    ada: Account, space: EmbeddingSpace, question: Asks, rows: int
) -> None:
    now = timezone.now()
    twins = [
        remembers(space, 1, *away, owner=ada, created_at=now) for away in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    ]
    question(1, 0, 0, 0)

    found = recall(ada, first_step=Step(1024, rows, 512))

    assert ids(found) == [memory.pk for memory in reversed(twins)]


def test_bytes_are_counted_not_characters(ada: Account, space: EmbeddingSpace, question: Asks) -> None:
    remembers(space, 1, 0, owner=ada, body="ü" * 10)
    question(1, 0)

    assert recall(ada, byte_budget=19).path == "empty"
    assert recall(ada, byte_budget=20).path == "semantic"


def test_a_stale_vector_is_not_used(ada: Account, space: EmbeddingSpace, question: Asks) -> None:
    memory = MemoryFactory.create(owner=ada, body="green")
    index(memory, space, (1, 0), text_hash("red"))
    question(1, 0)

    assert recall(ada).path == "empty"


def test_a_vector_is_right_without_a_stored_hash_of_its_body(
    ada: Account, space: EmbeddingSpace, question: Asks
) -> None:
    memory = remembers(space, 1, 0, owner=ada, hashed=False)
    question(1, 0)

    assert ids(recall(ada)) == [memory.pk]


def test_vectors_of_another_width_and_space_do_not_disturb(
    ada: Account, space: EmbeddingSpace, question: Asks
) -> None:
    memory = remembers(space, 1, 0, owner=ada)
    other = EmbeddingSpace.objects.create(provider="x", endpoint_hash=b"x" * 32, model="x")
    index(memory, other, (1, 0, 0))
    question(1, 0)

    assert ids(recall(ada)) == [memory.pk]


def test_every_eligible_memory_takes_part_however_many_are_nearer(
    ada: Account, space: EmbeddingSpace, question: Asks, set_limits: SetLimits
) -> None:
    set_limits(memoryImportanceWeightPerMille=300, memoryVitalityWeightPerMille=0)
    for _ in range(20):
        remembers(space, 10, 1, owner=ada, importance=1)
    vital = remembers(space, 3, 2, owner=ada, importance=10)
    question(1, 0)

    assert ids(recall(ada, count=1, first_step=Step(4, 128, 0))) == [vital.pk]


def test_a_window_full_of_unreadable_rows_does_not_end_the_search(
    ada: Account, space: EmbeddingSpace, question: Asks
) -> None:
    for _ in range(6):
        index(MemoryFactory.create(owner=ada), space, (1, 0), text_hash("stale"))
    memory = remembers(space, 1, 1, owner=ada)
    question(1, 0)

    assert ids(recall(ada, first_step=Step(3, 128, 0))) == [memory.pk]


# --- Delivered versions ---


def test_a_delivered_version_is_passed_over_and_an_edited_one_is_not(
    ada: Account, space: EmbeddingSpace, question: Asks
) -> None:
    memory = remembers(space, 1, 0, owner=ada, body="Ada drinks tea.")
    question(1, 0)
    before, now = text_hash("Ada drinks coffee.").hex(), text_hash(memory.body).hex()

    assert ids(recall(ada, exclude=[Version(memory.pk, before)])) == [memory.pk]
    assert ids(recall(ada, exclude=[Version(memory.pk, now)])) == []
    assert ids(recall(ada, exclude=[Version(memory.pk)])) == []


def test_with_everything_near_delivered_there_is_no_fallback(
    ada: Account, space: EmbeddingSpace, question: Asks, set_limits: SetLimits
) -> None:
    set_limits(memoryLexicalWeightPerMille=0)
    near = remembers(space, 1, 0, owner=ada, body="Tea at five.")
    remembers(space, 0, 1, owner=ada, body="Tea at six.")
    question(1, 0)

    assert recall(ada, "tea", exclude=[Version(near.pk)]) == Recall([], "empty")


# --- Fallbacks ---


def test_with_nothing_near_words_decide_and_age_does_not(
    ada: Account, space: EmbeddingSpace, question: Asks, set_limits: SetLimits
) -> None:
    set_limits(memoryLexicalWeightPerMille=0)
    old = timezone.now() - timedelta(days=300)
    match = remembers(space, 0, 1, owner=ada, body="Ada drinks TEA.", created_at=old, importance=1)
    remembers(space, 0, 1, owner=ada, body="Ada reads.")
    question(1, 0)

    found = recall(ada, "tea")

    assert (found.path, found.degraded, ids(found)) == ("keyword", False, [match.pk])
    assert found.memories[0].score == pytest.approx(0.60)
    assert found.memories[0].similarity is None


@pytest.mark.parametrize("status", [400, 401, 429, 500, 503])
def test_without_the_model_words_and_recency_decide_and_the_answer_says_so(
    ada: Account, server: FakeServer, space: EmbeddingSpace, status: int
) -> None:
    old = timezone.now() - timedelta(days=30)
    newest = remembers(space, 1, 0, owner=ada, body="Ada reads.", importance=1)
    match = remembers(space, 1, 0, owner=ada, body="Ada drinks tea.", created_at=old, importance=1)
    server.always(refuses(status))

    found = recall(ada, "tea")

    assert (found.path, found.degraded, ids(found)) == ("recency", True, [match.pk, newest.pk])
    assert [one.score for one in found.memories] == pytest.approx([0.60 + 0.15 / 2, 0.15], abs=1e-6)


def test_without_the_model_the_same_body_comes_once(
    ada: Account, server: FakeServer, space: EmbeddingSpace
) -> None:
    MemoryFactory.create(owner=ada, body="Tea.")
    newer, third = MemoryFactory.create(owner=ada, body="Tea."), MemoryFactory.create(owner=ada, body="Go.")
    server.always(refuses(500))

    assert ids(recall(ada, "tea", count=2)) == [newer.pk, third.pk]


@pytest.mark.parametrize("before", [49, 50, 51, 249, 250, 300])
def test_pages_widen_until_delivered_memories_no_longer_crowd_out_the_others(
    ada: Account, server: FakeServer, space: EmbeddingSpace, before: int
) -> None:
    category = CategoryFactory.create(owner=ada)
    last = MemoryFactory.create(owner=ada, category=category, body="tea 0", importance=1)
    others = MemoryFactory.create_batch(before, owner=ada, category=category, body="tea", importance=2)
    server.always(refuses(500))

    found = recall(ada, "tea", exclude=[Version(memory.pk) for memory in others])

    assert ids(found) == [last.pk]


@pytest.mark.parametrize("character", ["%", "_", "\\", "'", '"'])
def test_signs_of_patterns_stand_for_themselves(
    ada: Account, space: EmbeddingSpace, question: Asks, character: str
) -> None:
    plain = remembers(space, 0, 1, owner=ada, body="aXXb")
    signed = remembers(space, 0, 1, owner=ada, body=f"A{character}{character}B")
    question(1, 0)

    assert ids(recall(ada, f"a{character}{character}b")) == [signed.pk]
    assert plain.pk not in ids(recall(ada, character * 2))


def test_a_single_character_matches_nothing(ada: Account, space: EmbeddingSpace, question: Asks) -> None:
    remembers(space, 0, 1, owner=ada, body="tea")
    question(1, 0)

    assert recall(ada, "t").path == "empty"


# --- What it reads, and how ---


def test_a_recall_is_no_use(ada: Account, space: EmbeddingSpace, question: Asks) -> None:
    memory = remembers(space, 1, 0, owner=ada)
    before = Memory.objects.values().get()
    question(1, 0)

    assert ids(recall(ada)) == [memory.pk]
    assert Memory.objects.values().get() == before
    assert not MemoryUse.objects.exists()


def statements(account: Account) -> int:
    """Count what goes over the wire, the statements outside Django's own cursor included."""
    connection.ensure_connection()
    with tempfile.TemporaryFile("w+") as trace:
        connection.connection.pgconn.trace(trace.fileno())
        try:
            recall(account, count=3)
        finally:
            connection.connection.pgconn.untrace()
        trace.seek(0)
        return sum("\tF\t" in line and line.split("\t")[3] in ("Query", "Execute") for line in trace)


def test_the_number_of_statements_does_not_grow(ada: Account, space: EmbeddingSpace, question: Asks) -> None:
    question(1, 0, 0, 0)
    category = CategoryFactory.create(owner=ada)
    vectors = [(1, 0, 0, 0), (1, 2, 0, 0), (1, 0, 2, 0), (1, 0, 0, 2)]
    for vector in vectors:
        remembers(space, *vector, owner=ada, category=category)
    few = statements(ada)
    for _ in range(10):
        remembers(space, 1, 2, 2, 2, owner=ada, category=category)

    # The settings, the wish to be left alone, the usage and the space for the question; the scope; then
    # savepoint, settings, scoring, vectors, bodies, and the end of the savepoint.
    assert (few, statements(ada)) == (11, 11)


def plan(asked: SemanticQuery, step: Step) -> str:
    sql, params = semantic.statement(asked, step)
    with vector_cursor() as cursor:
        return "\n".join(line for (line,) in cursor.execute(f"explain {sql}", params))


def test_the_scan_reads_only_the_scope_and_probes_only_the_window(
    ada: Account, ben: Account, space: EmbeddingSpace, question: Asks
) -> None:
    question(1, 0)
    remembers(space, 1, 0, owner=ada)
    others = [
        memory
        for _ in range(60)
        for memory in MemoryFactory.create_batch(10, owner=ben, category=CategoryFactory.create(owner=ben))
    ]
    MemoryEmbedding.objects.bulk_create(
        MemoryEmbedding(
            memory=memory, space=space, account_id=ben.pk, category_id=memory.category_id,
            body_hash=text_hash(memory.body), vec=[0.5] * 300,
        )
        for memory in others
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    tea = embed_query("tea", account_id=ada.pk)
    asked = SemanticQuery(ada, recall_scope(ada), "tea", tea, load_config(), timezone.now())

    found = plan(asked, FIRST_STEP)

    assert "embedding_by_category" in found
    assert "memories_memory_pkey" in found
    assert "Seq Scan on embeddings_memoryembedding" not in found
    assert "Seq Scan on memories_memory one" not in found


def test_the_work_is_linear_whatever_the_statistics_say(
    ada: Account, space: EmbeddingSpace, question: Asks
) -> None:
    """After a first import there are none, and the planner takes a large account for an empty one."""
    width = 1_000
    question(*[1] * width)
    category, rows = CategoryFactory.create(owner=ada), 6_000
    body = "m" * 200
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO memories_memory (owner_id, category_id, body, kind, importance, status, source,
                use_count, last_used_at, created_at, updated_at, origin)
            SELECT %(owner)s, %(category)s, %(body)s, 'fact', 5, 'active', 'user', 0, now(), now(), now(),
                '{}'
            FROM generate_series(1, %(rows)s);
            INSERT INTO memories_bodyhash SELECT id, %(hash)s FROM memories_memory WHERE owner_id = %(owner)s;
            INSERT INTO embeddings_memoryembedding
                (memory_id, space_id, account_id, category_id, body_hash, vec)
            SELECT id, %(space)s, owner_id, category_id, %(hash)s, %(vec)s::halfvec
            FROM memories_memory WHERE owner_id = %(owner)s;
            SELECT pg_clear_relation_stats('public', relname) FROM pg_class
            WHERE relname IN ('memories_memory', 'memories_bodyhash', 'embeddings_memoryembedding')
            """,
            {"owner": ada.pk, "category": category.pk, "body": body, "hash": text_hash(body), "rows": rows,
             "space": space.pk, "vec": str([1] * width)},
        )  # fmt: skip
    tea = embed_query("tea", account_id=ada.pk)
    asked = SemanticQuery(ada, recall_scope(ada), "tea", tea, load_config(), timezone.now())

    for step in (FIRST_STEP, Step(semantic.EVERYTHING, 100, 0), Step(*[semantic.EVERYTHING] * 3)):
        sql, params = semantic.statement(asked, step)
        with vector_cursor() as cursor:
            found = cursor.execute(f"explain (analyze, format json) {sql}", params).fetchone()
        assert found is not None
        assert rows_handled(found[0][0]["Plan"]) <= 2 * rows, step


@pytest.mark.django_db(transaction=True)
def test_the_question_is_embedded_before_the_snapshot_opens(
    ada: Account, server: FakeServer, space: EmbeddingSpace, settings: LazySettings
) -> None:
    settings.SNAPSHOTS_MAY_NEST = False
    memory = remembers(space, 1, 0, owner=ada)
    scope = recall_scope(ada)

    def edits_meanwhile(request: Received) -> Reply:
        # Arrives while the question is under way: what is read afterwards has to be this.
        with transaction.atomic():
            Memory.objects.filter(pk=memory.pk).update(importance=9)
        connection.close()
        return gives_vectors(change=lambda rows: [rows[0] | {"embedding": [1, 0]}])(request)

    server.then(edits_meanwhile)
    found = retrieve(account=ada, query="tea", scope=scope)

    assert [one.memory.importance for one in found.memories] == [9]


@pytest.mark.django_db(transaction=True)
def test_a_snapshot_only_reads_and_only_once(ada: Account, settings: LazySettings) -> None:
    settings.SNAPSHOTS_MAY_NEST = False
    with read_snapshot(), connection.cursor() as cursor:
        cursor.execute("SHOW transaction_isolation")
        isolation = cursor.fetchone()
        cursor.execute("SHOW transaction_read_only")
        read_only = cursor.fetchone()

    assert (isolation, read_only) == (("repeatable read",), ("on",))
    with pytest.raises(TransactionManagementError), transaction.atomic(), read_snapshot():
        pass


def test_unusable_half_lives_are_said_aloud(ada: Account, space: EmbeddingSpace) -> None:
    remembers(space, 1, 0, owner=ada)
    ConfigSection.objects.update_or_create(
        name="runtime.memoryRetention", defaults={"document": {"halfLifeByImportance": {"3": "long"}}}
    )

    with pytest.raises(Unavailable, match="half-lives"):
        recall(ada)


def test_a_limit_out_of_bounds_counts_as_not_set(ada: Account, set_limits: SetLimits) -> None:
    set_limits(
        memorySemanticFloorPerMille=951, memoryParaphrasePerMille="700", memoryDuplicatePerMille=True,
        memoryImportanceWeightPerMille=-1, memoryVitalityWeightPerMille=300,
    )  # fmt: skip

    limits = load_config().limits

    assert (limits.floor, limits.paraphrase, limits.duplicate) == (0.2, 0.9, 0.93)
    assert (limits.weights.importance, limits.weights.vitality) == (0.1, 0.3)
