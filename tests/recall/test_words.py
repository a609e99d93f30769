"""S9, S14: words of a question count by their rarity, in every form, for whoever may read the memory."""

import pytest
from django.db import connection
from django.utils import timezone

from embeddings.models import EmbeddingSpace
from memories.models import Account, Memory
from recall import keyword
from recall.keyword import KeywordQuery
from recall.models import MemoryWord
from recall.retrieval import Recall, retrieve
from recall.scope import recall_scope
from tests.factories import CategoryFactory, MemoryFactory, ProjectFactory, ProjectMemberFactory
from tests.fakes.server import FakeServer, refuses
from tests.plans import rows_handled
from tests.recall.conftest import Asks, SetLimits
from tests.recall.stores import remembers

pytestmark = pytest.mark.django_db


def lexemes(text: str, language: str = "english") -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT recall_lexemes(%s, %s)", [text, language])
        return set(cursor.fetchone()[0])


def words_of(memory: Memory) -> set[str]:
    return set(MemoryWord.objects.filter(memory=memory).values_list("lexeme", flat=True))


def ask(account: Account, query: str) -> Recall:
    return retrieve(account=account, query=query, scope=recall_scope(account))


def found(account: Account, query: str) -> list[str]:
    return [one.memory.body for one in ask(account, query).memories]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Running runs; RUN!", "english", {"run"}),
        ("the of and", "english", set()),
        ("?! … — ''", "english", set()),
        ("", "english", set()),
        ("Häuser und Autos", "german", {"haus", "autos"}),
        ("The Cats", "simple", {"the", "cats"}),
        ("ﬁne ＡＢＣ", "english", {"fine", "abc"}),  # written in other forms of the same letters
        ("日本語", "english", {"日本", "本語"}),
        ("日", "english", {"日"}),
        ("my iPhoneを買う 2023", "english", {"iphon", "を買", "買う", "2023"}),
        ("हिन्दी में", "hindi", {"हिन्द", "म"}),
        ("naïve café", "english", {"naïv", "café"}),
        ("x" * 100, "simple", {"x" * 64}),
        ("a'b\\c\"d%e", "simple", {"a", "b", "c", "d", "e"}),
    ],
)
def test_a_text_becomes_stems_and_pairs(text: str, language: str, expected: set[str]) -> None:
    assert lexemes(text, language) == expected


@pytest.mark.parametrize("language", [name for name, _ in Account._meta.get_field("language").choices or []])
def test_every_language_that_may_be_chosen_works(language: str) -> None:
    assert lexemes("Elowen 2023", language)


def test_words_follow_the_memory_whoever_changes_it(ada: Account, ben: Account) -> None:
    memory = MemoryFactory.create(owner=ada, body="green tea")
    assert words_of(memory) == {"green", "tea"}
    rows = Memory.objects.filter(pk=memory.pk)

    rows.update(body="black coffee")
    assert words_of(memory) == {"black", "coffe"}
    rows.update(category=None)
    assert words_of(memory) == set()
    other = CategoryFactory.create(owner=ada)
    rows.update(category=other)
    assert set(MemoryWord.objects.values_list("category_id", flat=True)) == {other.pk}
    rows.update(status=Memory.Status.DELETED)
    assert words_of(memory) == set()
    rows.update(status=Memory.Status.ACTIVE)
    assert words_of(memory) == {"black", "coffe"}
    rows.delete()
    assert not MemoryWord.objects.exists()


def test_words_follow_the_language_of_the_owner(ada: Account, ben: Account) -> None:
    memory = MemoryFactory.create(owner=ada, body="Häuser")
    others = MemoryFactory.create(owner=ben, body="houses")

    ada.language = "german"
    ada.save()

    assert words_of(memory) == {"haus"}
    assert words_of(others) == {"hous"}


def test_a_use_touches_no_word(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada, body="tea")
    MemoryWord.objects.filter(memory=memory).update(lexeme="planted")

    Memory.objects.filter(pk=memory.pk).update(use_count=5, last_used_at=timezone.now(), body="tea")

    assert words_of(memory) == {"planted"}


def test_a_memory_is_found_by_its_words_before_it_has_a_vector(
    ada: Account, space: EmbeddingSpace, question: Asks
) -> None:
    question(1, 0)
    for number in range(5):
        remembers(space, 1, 0.1 * number, owner=ada, body=f"nearer {number}")
    MemoryFactory.create(owner=ada, body="The code of the garage is 4711.")

    assert "The code of the garage is 4711." in found(ada, "What was the garage code?")


def test_a_rare_word_counts_more_than_a_common_one(
    ada: Account, space: EmbeddingSpace, question: Asks
) -> None:
    question(1, 0)
    for number in range(8):
        remembers(space, 1, 0, owner=ada, body=f"tea, no {number}")
    remembers(space, 1, 0, owner=ada, body="bergamot")

    assert found(ada, "tea bergamot")[0] == "bergamot"


def test_less_than_the_floor_of_words_makes_no_memory_relevant(
    ada: Account, space: EmbeddingSpace, question: Asks, set_limits: SetLimits
) -> None:
    question(1, 0)
    MemoryFactory.create(owner=ada, body="tea")
    MemoryFactory.create(owner=ada, body="bergamot")

    set_limits(memoryLexicalFloorPerMille=500)
    assert found(ada, "tea bergamot") == ["bergamot", "tea"]
    set_limits(memoryLexicalFloorPerMille=501)
    assert found(ada, "tea bergamot") == []


def test_without_a_share_of_words_only_the_cosine_counts(
    ada: Account, space: EmbeddingSpace, question: Asks, set_limits: SetLimits
) -> None:
    set_limits(memoryLexicalWeightPerMille=0)
    question(1, 0)
    remembers(space, 1, 2, owner=ada, body="tea")
    remembers(space, 1, 0, owner=ada, body="coffee")

    assert found(ada, "tea") == ["coffee", "tea"]


@pytest.mark.parametrize("query", ["the of and", "?!…", "%%", "'; drop table x; --", "\\", "🙂", "\u202e"])
def test_a_question_without_any_word_goes_by_meaning_alone(
    ada: Account, space: EmbeddingSpace, question: Asks, query: str
) -> None:
    question(1, 0)
    remembers(space, 1, 0, owner=ada, body="coffee")

    assert found(ada, query) == ["coffee"]


def test_of_a_very_long_question_the_rarest_words_count(
    ada: Account, space: EmbeddingSpace, question: Asks
) -> None:
    question(1, 0)
    common = " ".join(f"w{number}" for number in range(100))
    for _ in range(3):
        MemoryFactory.create(owner=ada, body=common)
    MemoryFactory.create(owner=ada, body="bergamot")

    assert found(ada, f"{common} bergamot")[0] == common
    assert "bergamot" in found(ada, f"bergamot {'w1 ' * 500}")


def test_in_a_pool_each_memory_is_found_in_its_own_language(
    ada: Account, ben: Account, space: EmbeddingSpace, question: Asks
) -> None:
    question(1, 0)
    project = ProjectFactory.create(memory_shared=True)
    for account in (ada, ben):
        ProjectMemberFactory.create(project=project, account=account)
    ben.language = "german"
    ben.save()
    pool = CategoryFactory.create(owner=None, project=project)
    MemoryFactory.create(owner=ben, category=pool, body="Die Häuser am See")

    seen = retrieve(account=ada, query="Häuser", scope=recall_scope(ada, project.pk))
    inflected = retrieve(account=ada, query="Haus", scope=recall_scope(ada, project.pk))

    assert [one.memory.owner for one in [*seen.memories, *inflected.memories]] == [ben, ben]


def test_without_the_model_the_words_rank_by_what_they_are_worth(
    ada: Account, server: FakeServer, space: EmbeddingSpace
) -> None:
    now = timezone.now()
    server.always(refuses(500))
    bodies = ["green tea", "bergamot and more", "tea with bergamot", "nothing"]
    for body in bodies:
        MemoryFactory.create(owner=ada, body=body, created_at=now)

    answer = ask(ada, "Is there bergamot in tea?")

    assert answer.path == "recency"
    ranked = [one.memory.body for one in answer.memories]
    assert (ranked[0], ranked[-1]) == ("tea with bergamot", "nothing")


def test_the_page_of_words_reads_each_row_once_whatever_the_statistics_say(ada: Account) -> None:
    category, rows = CategoryFactory.create(owner=ada), 3_000
    Memory.objects.bulk_create(
        [Memory(owner=ada, category=category, body=f"tea {number}") for number in range(rows)]
    )
    asked = KeywordQuery(ada, recall_scope(ada), "tea", 0.4, timezone.now(), recency=True)
    sql, params = keyword.statement(asked)
    with connection.cursor() as cursor:
        cursor.execute(f"explain (analyze, format json) {sql}", params | {"start": 0, "size": 50})
        plan = cursor.fetchone()[0][0]["Plan"]

    assert rows_handled(plan) <= 2 * rows
