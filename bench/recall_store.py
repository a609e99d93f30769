"""A store for the benchmarks of recall: vectors about topics, bodies of common and rare words."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from embeddings.embedding import QueryVector
    from embeddings.models import EmbeddingSpace
    from memories.models import Account
    from recall.scope import RecallScope

CATEGORIES, TOPICS = 8, 50
VOCABULARY, WORDS_PER_BODY = 20_000, 25
WORDS_OF_A_BODY, OTHER_WORDS = 5, 3  # in a question

type Matrix = NDArray[Any]


@dataclass
class Store:
    """What was stored, once more in memory."""

    account: "Account"
    scope: "RecallScope"
    space: "EmbeddingSpace"
    ids: Matrix
    vectors: Matrix  # float32, length 1, from the same half floats that the database holds
    halves: Matrix
    topics: Matrix
    about: Matrix  # number of each memory's topic
    words: Matrix  # a row of word numbers for each memory, some of them more than once
    importance: Matrix
    use_count: Matrix
    age_days: Matrix

    @cached_property
    def holders(self) -> dict[int, Matrix]:
        """Return the places of the memories that hold a word."""
        places: dict[int, set[int]] = defaultdict(set)
        for place, row in enumerate(self.words):
            for word in row:
                places[int(word)].add(place)
        return {word: np.array(sorted(found)) for word, found in places.items()}


@dataclass(frozen=True)
class Question:
    vector: Matrix
    words: frozenset[int]

    @property
    def text(self) -> str:
        return text_of(self.words)

    def asked(self, store: Store) -> "QueryVector":
        from embeddings.embedding import QueryVector

        return QueryVector(self.vector, store.space)


def question(store: Store, random: np.random.Generator) -> Question:
    """Ask about the topic of one memory, with some of its words and some others."""
    place = int(random.integers(len(store.ids)))
    vector = directions(random, store.topics[store.about[place]])
    own = random.choice(store.words[place], size=WORDS_OF_A_BODY)
    words = frozenset(int(word) for word in [*own, *some_words(random, OTHER_WORDS)])
    return Question(vector.astype(np.float16).astype(np.float32), words)


def directions(random: np.random.Generator, topics: Matrix) -> Matrix:
    """Return a vector about each topic: cosine 0.36 to others about it, near 0 to the rest."""
    return 0.6 * topics + 0.8 * unit(random.normal(size=topics.shape))


def some_words(random: np.random.Generator, size: int | tuple[int, int]) -> Matrix:
    """Draw words as languages do, the n-th in rank with a chance of about 1 / n."""
    chances = 1 / (np.arange(VOCABULARY) + 10)
    return random.choice(VOCABULARY, size=size, p=chances / chances.sum())


def text_of(words: Sequence[int] | frozenset[int] | Matrix) -> str:
    return " ".join(f"w{word}" for word in words)


def unit(rows: Matrix) -> Matrix:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def fill(rows: int, dims: int, random: np.random.Generator) -> Store:
    from django.db import connection
    from django.utils import timezone

    from embeddings.models import EmbeddingSpace
    from memories.models import Account, Category
    from recall.scope import recall_scope

    name = f"bench {rows} x {dims}"
    account = Account.objects.create(username=name)
    space = EmbeddingSpace.objects.create(provider="bench", endpoint_hash=b"\0" * 32, model=name, dims=dims)
    categories = [Category.objects.create(owner=account, name=str(n)).pk for n in range(CATEGORIES)]
    topics = unit(np.random.default_rng(dims).normal(size=(TOPICS, dims)))
    about = random.integers(TOPICS, size=rows)
    words = some_words(random, (rows, WORDS_PER_BODY))
    halves = directions(random, topics[about]).astype(np.float16)
    facts = {
        "importance": random.integers(1, 11, size=rows),
        "use_count": random.integers(0, 20, size=rows),
        "age_days": random.integers(0, 200, size=rows).astype(float),
    }
    ids = insert_memories(account, categories, facts, words, timezone.now())
    insert_vectors(ids, account, space, categories, halves)
    with connection.cursor() as cursor:
        cursor.execute("delete from embeddings_pendingmemory")
        cursor.execute("vacuum (analyze)")
    vectors = unit(halves.astype(np.float32))
    return Store(account, recall_scope(account), space, ids, vectors, halves, topics, about, words, **facts)


def insert_memories(
    account: "Account", categories: Sequence[int], facts: dict[str, Matrix], words: Matrix, now: Any
) -> Matrix:
    """Copy the rows in and return their ids, in order."""
    from django.db import connection

    rows = len(facts["importance"])
    with connection.cursor() as cursor:
        cursor.execute("select coalesce(max(id), 0) from memories_memory")
        first = cursor.fetchone()[0] + 1
        columns = (
            "id, owner_id, category_id, body, kind, importance, status, source, use_count, last_used_at,"
            " created_at, updated_at, origin"
        )
        with cursor.copy(f"copy memories_memory ({columns}) from stdin") as copy:
            for n in range(rows):
                used_at = now - timedelta(days=float(facts["age_days"][n]))
                copy.write_row((
                    first + n, account.pk, categories[n % CATEGORIES], text_of(words[n]), "fact",
                    int(facts["importance"][n]), "active", "user", int(facts["use_count"][n]),
                    used_at, used_at, used_at, "{}",
                ))  # fmt: skip
        cursor.execute(
            "insert into memories_bodyhash (memory_id, sha256) select id, sha256(convert_to(body, 'UTF8'))"
            " from memories_memory where id >= %s",
            [first],
        )
    return np.arange(first, first + rows)


def insert_vectors(
    ids: Matrix, account: "Account", space: "EmbeddingSpace", categories: Sequence[int], halves: Matrix
) -> None:
    from django.db import connection

    columns = "memory_id, space_id, account_id, category_id, body_hash, vec"
    header = halves.shape[1].to_bytes(2) + b"\0\0"
    with connection.cursor() as cursor:
        cursor.execute("select memory_id, sha256 from memories_bodyhash where memory_id >= %s", [int(ids[0])])
        hashes = dict(cursor.fetchall())
        with cursor.copy(
            f"copy embeddings_memoryembedding ({columns}) from stdin with (format binary)"
        ) as copy:
            copy.set_types(["int8", "int8", "int8", "int8", "bytea", "bytea"])
            for n, (memory_id, half) in enumerate(zip(ids, halves, strict=True)):
                packed = header + half.astype(">f2").tobytes()
                copy.write_row((
                    int(memory_id), space.pk, account.pk, categories[n % CATEGORIES],
                    bytes(hashes[memory_id]), packed,
                ))  # fmt: skip
