"""M1: what `retrieve` answers on random stores equals the same rules written down in plain Python."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from random import Random

import pytest
from django.db import connection, transaction
from django.utils import timezone

from elowen.lib.hashing import text_hash, text_hash_hex
from embeddings.models import EmbeddingSpace
from memories.models import Account, Category, ConfigSection, Memory, Project, ProjectMember
from memories.policy import DEFAULT_POLICY
from memories.vitality import vitality
from recall.ranking import keyword_score, relevance, score, sound_weights
from recall.retrieval import Version, retrieve
from recall.scope import recall_scope
from recall.semantic import Step
from tests.factories import CategoryFactory, MemoryFactory, ProjectFactory, ProjectMemberFactory
from tests.fakes.server import FakeServer, gives_vectors, refuses
from tests.recall.stores import age_in_days, cosine, index

pytestmark = pytest.mark.django_db

STORES = 600
# Exact as halves: what is normalised on the way to the database stays these very numbers.
QUESTIONS = [(1, 0, 0, 0), (0, 0, -1, 0), (0.5, 0.5, 0.5, 0.5), (0.5, -0.5, 0.5, -0.5)]
WORDS = ["tea", "Tea pot", "100% tea", "te_a", "coffee", "tea with Ben", "TEA TIME", "café", "a\\b"]
ASKED = ["tea", "TEA", "100%", "_", "e_a", "zzz", "café", "a\\b", "t"]
ASKED += ["teas with Ben?", "the pot of coffee", "time"]


@dataclass(frozen=True)
class World:
    ada: Account
    ben: Account
    project: Project
    mine: list[Category]  # Ada's: two global ones and that of the project
    pool: Category
    foreign: list[Category]  # never Ada's to recall from


@dataclass(frozen=True)
class Row:
    memory: Memory
    vector: tuple[int, ...] | None  # a current one, in the active space


@dataclass(frozen=True)
class Draw:
    """One random question with its limits."""

    text: str
    vector: tuple[float, ...] | None  # None: the model fails
    count: int
    byte_budget: int
    exclude: tuple[Version, ...]
    first_step: Step
    floor: int
    importance: int
    vitality: int
    lexical: int
    lexical_floor: int


@pytest.fixture
def world(ada: Account, ben: Account) -> World:
    ben.language = "german"
    ben.save()
    project = ProjectFactory.create(memory_shared=True)
    closed = ProjectFactory.create(memory_shared=False)
    for account in (ada, ben):
        ProjectMemberFactory.create(project=project, account=account)
    ProjectMemberFactory.create(project=closed, account=ada)
    own = CategoryFactory.create
    return World(
        ada,
        ben,
        project,
        mine=[own(owner=ada), own(owner=ada), own(owner=ada, project=project)],
        pool=own(owner=None, project=project),
        foreign=[own(owner=ben), own(owner=None, project=closed), own(owner=ada, project=closed)],
    )


def test_every_answer_is_that_of_the_reference(
    world: World, server: FakeServer, space: EmbeddingSpace
) -> None:
    other = EmbeddingSpace.objects.create(provider="x", endpoint_hash=b"x" * 32, model="x")
    paths: list[str] = []
    for seed in range(STORES):
        with transaction.atomic():
            paths.append(compare(seed, world, server, space, other))
            transaction.set_rollback(True)

    # Random stores that never get to one of the paths would prove little.
    assert all(paths.count(path) >= 10 for path in ("semantic", "keyword", "recency", "empty")), paths


def compare(seed: int, world: World, server: FakeServer, space: EmbeddingSpace, other: EmbeddingSpace) -> str:
    random, now = Random(seed), timezone.now()
    rows = [random_row(random, world, space, other, now) for _ in range(random.choice([0, 3, 12, 30]))]
    draw = random_draw(random, rows)
    save_limits(draw)
    scope = recall_scope(world.ada, random.choice([None, world.project.pk]))
    usable = set(scope.category_ids)
    if random.random() < 0.2:  # revoked after the scope was resolved
        ProjectMember.objects.filter(account=world.ada, project=world.project).delete()
        usable.discard(world.pool.pk)
    answer_with(server, draw.vector)

    found = retrieve(
        account=world.ada,
        query=draw.text,
        scope=scope,
        count=draw.count,
        byte_budget=draw.byte_budget,
        exclude=draw.exclude,
        first_step=draw.first_step,
    )

    in_scope = [row for row in rows if row.memory.status == "active" and row.memory.category_id in usable]
    readable = [row for row in in_scope if row.memory.owner == world.ada or row.memory.category == world.pool]
    said = said_by(in_scope, draw.text, languages=["english", "german"][: 1 + (world.pool.pk in usable)])
    path, expected = reference(readable, said, draw, now)
    assert (found.path, [one.memory.pk for one in found.memories]) == (path, [pk for pk, _ in expected]), seed
    assert [one.score for one in found.memories] == pytest.approx([value for _, value in expected], abs=1e-5)
    assert found.degraded == (draw.vector is None)
    return found.path


def answer_with(server: FakeServer, vector: tuple[float, ...] | None) -> None:
    if vector is None:
        server.always(refuses(500))
    else:
        server.always(gives_vectors(change=lambda rows: [rows[0] | {"embedding": list(vector)}]))


def save_limits(draw: Draw) -> None:
    document = {
        "memorySemanticFloorPerMille": draw.floor,
        "memoryParaphrasePerMille": 705,
        "memoryImportanceWeightPerMille": draw.importance,
        "memoryVitalityWeightPerMille": draw.vitality,
        "memoryLexicalWeightPerMille": draw.lexical,
        "memoryLexicalFloorPerMille": draw.lexical_floor,
    }
    ConfigSection.objects.update_or_create(name="runtime.limits", defaults={"document": document})


def random_row(
    random: Random, world: World, space: EmbeddingSpace, other: EmbeddingSpace, now: datetime
) -> Row:
    category = random.choice([*world.mine, *world.mine, world.pool, *world.foreign, None])
    owner = category.owner if category and category.owner else random.choice([world.ada, world.ben])
    if random.random() < 0.1:  # nobody's rows should be in another's category; they still stay private
        owner = world.ben
    memory = MemoryFactory.create(
        owner=owner if category is None or category.owner else random.choice([owner, None]),
        category=category,
        body=random.choice(WORDS) + random.choice(["", "", f" {random.randrange(99)}", " ü" * 20]),
        importance=random.randint(1, 10),
        status=random.choice(["active"] * 6 + ["archived", "deleted"]),
        use_count=random.choice([0, 1, 7, 100]),
        created_at=now - random.choice([timedelta(days=3), timedelta(hours=random.randrange(-50, 5000))]),
        last_used_at=random.choice([None, now - timedelta(hours=random.randrange(-50, 5000))]),
        hashed=random.random() < 0.9,
    )
    vector = tuple(random.randint(-2, 2) for _ in range(4))
    if not any(vector):
        return Row(memory, None)
    state = random.choice(["fresh"] * 6 + ["stale", "none", "elsewhere"])
    if state == "none":
        return Row(memory, None)
    stale = text_hash("what it said before") if state == "stale" else None
    index(memory, other if state == "elsewhere" else space, vector, stale)
    return Row(memory, vector if state == "fresh" else None)


def random_draw(random: Random, rows: Sequence[Row]) -> Draw:
    chosen = random.sample(rows, random.randint(0, len(rows))) if random.random() < 0.6 else []
    weights = random.choice([(100, 100), (100, 100), (0, 0), (300, 300), (0, 300)])
    return Draw(
        text=random.choice(ASKED),
        vector=None if random.random() < 0.2 else random.choice(QUESTIONS),
        count=random.choice([1, 2, 3, 10]),
        byte_budget=random.choice([5, 30, 120, 20_000]),
        exclude=tuple(random_version(random, row.memory) for row in chosen),
        first_step=Step(
            window=random.choice([1, 2, 3, 5, 1024]),
            rows=random.choice([1, 2, 3, 128]),
            said=random.choice([0, 1, 2, 512]),
        ),
        floor=random.choice([0, 200, 200, 500, 900]),
        importance=weights[0],
        vitality=weights[1],
        lexical=random.choice([0, 0, 0, 400, 400, 1000]),
        lexical_floor=random.choice([0, 300, 400, 1000]),
    )


def random_version(random: Random, memory: Memory) -> Version:
    return Version(
        memory.pk, random.choice([None, text_hash_hex(memory.body), text_hash_hex("another version")])
    )


@cache
def lexemes(text: str, language: str) -> frozenset[str]:
    """What the database makes of a text; that this is right is for test_words."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT recall_lexemes(%s, %s)", [text, language])
        return frozenset(cursor.fetchone()[0])


@dataclass(frozen=True)
class Said:
    """What the words of the question are worth."""

    worth: dict[int, int]  # by memory
    possible: int

    @property
    def best(self) -> int:
        return max(self.worth.values(), default=0)

    def matches(self, row: Row, draw: Draw) -> bool:
        worth = self.worth[row.memory.pk]
        return worth > 0 and self.possible > 0 and worth >= draw.lexical_floor / 1000 * self.possible


def said_by(rows: Sequence[Row], text: str, languages: Sequence[str]) -> Said:
    held = {
        row.memory.pk: lexemes(row.memory.body, row.memory.owner.language if row.memory.owner else "english")
        for row in rows
    }
    worth = {}
    for word in frozenset().union(*(lexemes(text, language) for language in languages)):
        times = sum(word in words for words in held.values())
        worth[word] = round(1_000_000 * math.log(1 + (len(rows) - times + 0.5) / (times + 0.5)))
    return Said(
        {pk: sum(worth[word] for word in words & worth.keys()) for pk, words in held.items()},
        sum(worth[word] for word in lexemes(text, languages[0])),
    )


def reference(
    rows: Sequence[Row], said: Said, draw: Draw, now: datetime
) -> tuple[str, list[tuple[int, float]]]:
    if draw.vector is None:
        return by_words(rows, said, draw, now, recency=True)
    weights = sound_weights(draw.importance / 1000, draw.vitality / 1000)
    near = {row.memory.pk: cosine(row.vector, draw.vector) for row in rows if row.vector}
    anchor = max([one for one in near.values() if one >= draw.floor / 1000], default=draw.floor / 1000)
    eligible = []
    for row in rows:
        own = near.get(row.memory.pk)
        clears = own is not None and own >= draw.floor / 1000
        if clears or (draw.lexical and said.matches(row, draw)):
            share = said.worth[row.memory.pk] / said.best if said.best else None
            value = score(
                relevance=relevance(own, share, anchor=anchor, lexical=draw.lexical / 1000),
                importance=row.memory.importance,
                vitality=vitality(row.memory, DEFAULT_POLICY, now),
                weights=weights,
            )
            eligible.append((value, row))
    if not eligible:
        return by_words(rows, said, draw, now, recency=False)
    picked = greedy(eligible, draw, with_vectors=True)
    clearing = {pk for pk, own in near.items() if own >= draw.floor / 1000}
    return named("semantic" if clearing & {pk for pk, _ in picked} else "keyword", picked)


def by_words(
    rows: Sequence[Row], said: Said, draw: Draw, now: datetime, *, recency: bool
) -> tuple[str, list[tuple[int, float]]]:
    found = []
    for row in rows:
        whole = len(draw.text) >= 2 and draw.text.lower() in row.memory.body.lower()
        if whole or recency or said.matches(row, draw):
            part = min(said.worth[row.memory.pk] / said.possible, 1) if said.possible else 0
            value = keyword_score(
                match=1 if whole else part,
                importance=row.memory.importance,
                age_days=age_in_days(row.memory.updated_at, now),
                recency=recency,
            )
            found.append((value, row))
    return named("recency" if recency else "keyword", greedy(found, draw, with_vectors=False))


def named(path: str, picked: list[tuple[int, float]]) -> tuple[str, list[tuple[int, float]]]:
    return (path if picked else "empty"), picked


def greedy(scored: Sequence[tuple[float, Row]], draw: Draw, *, with_vectors: bool) -> list[tuple[int, float]]:
    picked: list[tuple[float, Row]] = []
    left = draw.byte_budget
    for value, row in sorted(scored, key=lambda pair: (-pair[0], -pair[1].memory.pk)):
        size = len(row.memory.body.encode())
        if len(picked) == draw.count:
            break
        if is_delivered(row.memory, draw) or size > left:
            continue
        if any(repeats(row, other, with_vectors=with_vectors) for _, other in picked):
            continue
        picked.append((value, row))
        left -= size
    return [(row.memory.pk, value) for value, row in picked]


def is_delivered(memory: Memory, draw: Draw) -> bool:
    versions = [one.body_sha256 for one in draw.exclude if one.memory_id == memory.pk]
    return None in versions or text_hash_hex(memory.body) in versions


def repeats(row: Row, other: Row, *, with_vectors: bool) -> bool:
    if row.memory.body == other.memory.body:
        return True
    close = with_vectors and row.vector and other.vector and cosine(row.vector, other.vector) >= 0.705
    return bool(close)
