"""How well the right memories are found (M3), and how fast they can be (M4).

    python -m bench.locomo locomo10.json --conversations 10

Every dialogue turn ("speaker: text"), or with --notes every observation of the data set, is stored as a
memory through the real actions and indexed with the bundled model; then every question with evidence is
asked, the adversarial ones (category 5) left out. Each conversation is an account of its own. Reported are
the share of a question's evidence among the first k, how often there is any, and the mean reciprocal rank,
for `retrieve`, plain cosine, BM25 and the fusion of the last two by reciprocal ranks. `retrieve` leaves out
paraphrases of what it has picked, so its ranking loses evidence that says the same twice. No model judges.
"""

import argparse
import json
import math
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, quantiles
from typing import TYPE_CHECKING, Any

import numpy as np
import snowballstemmer

from bench.database import own_database
from bench.processes import worker

if TYPE_CHECKING:
    from memories.models import Account

DEPTHS = (5, 10, 20)
COUNT, BYTES = max(DEPTHS), 100_000
ADVERSARIAL = 5
K1, B, RRF = 1.5, 0.75, 60
STOP = """
    a an and are as at be but by did do does for from had has have he her his how i in is it its me my of on
    or she that the their they this to was we were what when where which who will with you your
"""
STOP_WORDS = frozenset(STOP.split())
PATIENCE_S = 60


@dataclass(frozen=True)
class Text:
    body: str
    turns: frozenset[str]  # the turns it is evidence of


@dataclass(frozen=True)
class Question:
    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    name: str
    texts: list[Text]
    questions: list[Question]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("path", type=Path, help="locomo10.json")
    parser.add_argument("--conversations", type=int, default=1)
    parser.add_argument("--notes", action="store_true", help="store observations instead of turns")
    parser.add_argument("--searchable", type=int, default=10, help="memories to time until they are found")
    parser.add_argument("--paraphrase", type=int, default=900, help="per mille; 990 leaves nearly all in")
    args = parser.parse_args()
    document = json.loads(args.path.read_text(encoding="utf-8"))[: args.conversations]
    conversations = [conversation_of(entry, notes=args.notes) for entry in document]
    with own_database():
        set_paraphrase(args.paraphrase)
        result = run(conversations)
        result["commit_to_searchable_ms"] = commit_to_searchable(args.searchable) if args.searchable else None
    show(result)


def run(conversations: Sequence[Conversation]) -> dict[str, Any]:
    accounts = [store(conversation) for conversation in conversations]
    indexed, seconds = index()
    found: dict[str, list[tuple[Question, list[frozenset[str]]]]] = defaultdict(list)
    for account, conversation in zip(accounts, conversations, strict=True):
        for question, rankings in ask_all(account, conversation):
            for name, ranking in rankings.items():
                found[name].append((question, ranking))
    return {
        "texts": indexed,
        "texts_per_second": round(indexed / seconds, 1),
        "questions": len(found["retrieve"]),
        "quality": {name: by_category(answers) for name, answers in found.items()},
    }


# --- The data set ---


def conversation_of(entry: Mapping[str, Any], *, notes: bool) -> Conversation:
    texts = list(observations(entry) if notes else dialogue(entry))
    known = frozenset().union(*(text.turns for text in texts))
    questions = [
        Question(one["question"], one["category"], evidence)
        for one in entry["qa"]
        if one["category"] != ADVERSARIAL and (evidence := turns_in(one["evidence"]) & known)
    ]
    return Conversation(entry["sample_id"], texts, questions)


def dialogue(entry: Mapping[str, Any]) -> Iterator[Text]:
    for session in entry["conversation"].values():
        if isinstance(session, list):
            for turn in session:
                yield Text(f"{turn['speaker']}: {turn['text']}", frozenset([turn["dia_id"]]))


def observations(entry: Mapping[str, Any]) -> Iterator[Text]:
    for session in entry["observation"].values():
        for notes in session.values():
            for note, source in notes:
                yield Text(note, turns_in([source] if isinstance(source, str) else source))


def turns_in(sources: Sequence[str]) -> frozenset[str]:
    """Return the turns named; some entries name several in one string."""
    return frozenset(name for source in sources for name in re.findall(r"D\d+:\d+", source))


# --- Elowen's part ---


def set_paraphrase(per_mille: int) -> None:
    from memories.models import ConfigSection

    ConfigSection.objects.update_or_create(
        name="runtime.limits", defaults={"document": {"memoryParaphrasePerMille": per_mille}}
    )


def store(conversation: Conversation) -> "Account":
    from memories.actions.accounts import create_account
    from memories.actions.editing import NewMemory, add_memories

    account = create_account(username=conversation.name)
    add_memories(by=account, entries=[NewMemory(text.body) for text in conversation.texts])
    return account


def index() -> tuple[int, float]:
    from embeddings.models import PendingMemory
    from embeddings.queue import drain

    indexed, began = 0, time.perf_counter()
    while PendingMemory.objects.exists():
        done = drain()
        indexed += done
        if not done:
            raise SystemExit("The model indexes nothing; see the log.")
    return indexed, time.perf_counter() - began


def ask_all(
    account: "Account", conversation: Conversation
) -> Iterator[tuple[Question, dict[str, list[frozenset[str]]]]]:
    from embeddings.embedding import embed_query
    from embeddings.scoring import hydrate_vectors
    from memories.models import Memory
    from recall.retrieval import recall_with
    from recall.scope import recall_scope

    scope = recall_scope(account)
    ids = list(Memory.objects.owned_by(account).order_by("pk").values_list("pk", flat=True))
    turns = dict(zip(ids, (text.turns for text in conversation.texts), strict=True))
    words = Bm25([text.body for text in conversation.texts])
    vectors = None
    for question in conversation.questions:
        asked = embed_query(question.text, account_id=account.pk)
        if vectors is None:
            known = hydrate_vectors(asked.space.pk, ids)
            vectors = np.stack([known[pk] for pk in ids])
        recall = recall_with(
            asked, account=account, text=question.text, scope=scope, count=COUNT, byte_budget=BYTES
        )
        by_cosine, by_words = vectors @ asked.vector, words.scores(question.text)
        rankings = {
            "retrieve": [one.memory.pk for one in recall.memories],
            "cosine": best(ids, by_cosine),
            "bm25": best(ids, by_words),
            "rrf": best(ids, ranks(by_cosine) + ranks(by_words)),
        }
        yield question, {name: [turns[pk] for pk in ranking] for name, ranking in rankings.items()}


def best(ids: Sequence[int], scores: Any) -> list[int]:
    return [ids[place] for place in np.argsort(-scores, kind="stable")[:COUNT]]


def ranks(scores: Any) -> Any:
    order = np.argsort(-scores, kind="stable")
    places = np.empty(len(order))
    places[order] = np.arange(1, len(order) + 1)
    return 1 / (RRF + places)


class Bm25:
    """Okapi BM25 over Snowball stems, with the statistics of the given texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.stemmer = snowballstemmer.stemmer("english")
        self.counts = [Counter(self.words(text)) for text in texts]
        lengths = np.array([sum(count.values()) for count in self.counts])
        self.norms = K1 * (1 - B + B * lengths / lengths.mean())
        self.texts_with = Counter(word for count in self.counts for word in count)

    def words(self, text: str) -> list[str]:
        plain = re.findall(r"\w+", text.lower())
        return [str(word) for word in self.stemmer.stemWords([one for one in plain if one not in STOP_WORDS])]

    def scores(self, question: str) -> Any:
        total = np.zeros(len(self.counts))
        for word in set(self.words(question)):
            texts_with = self.texts_with[word]
            rarity = math.log(1 + (len(self.counts) - texts_with + 0.5) / (texts_with + 0.5))
            frequency = np.array([count[word] for count in self.counts])
            total += rarity * frequency * (K1 + 1) / (frequency + self.norms)
        return total


# --- Measures ---


def by_category(answers: Sequence[tuple[Question, list[frozenset[str]]]]) -> dict[str, dict[str, float]]:
    groups: dict[str, list[dict[str, float]]] = defaultdict(list)
    for question, ranking in answers:
        measured = measures(question.evidence, ranking)
        groups["all"].append(measured)
        groups[str(question.category)].append(measured)
    return {
        name: {key: round(mean(one[key] for one in group), 3) for key in group[0]}
        for name, group in sorted(groups.items(), reverse=True)
    }


def measures(evidence: frozenset[str], ranking: Sequence[frozenset[str]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for depth in DEPTHS:
        covered = evidence & frozenset().union(*ranking[:depth])
        found[f"recall@{depth}"] = len(covered) / len(evidence)
        found[f"any@{depth}"] = float(bool(covered))
    hits = [place for place, turns in enumerate(ranking, 1) if turns & evidence]
    return found | {"mrr": 1 / hits[0] if hits else 0.0}


def show(result: Mapping[str, Any]) -> None:
    print(f"{'':>10} {'category':>8}  " + "  ".join(f"{key:>9}" for key in measures(frozenset("x"), [])))
    for name, categories in result["quality"].items():
        for category, values in categories.items():
            print(f"{name:>10} {category:>8}  " + "  ".join(f"{value:9.3f}" for value in values.values()))
    print(f"{result['questions']} questions; {result['texts']} texts, {result['texts_per_second']} a second")
    print(f"from commit to searchable, ms: {result['commit_to_searchable_ms']}")
    print(json.dumps(result))


# --- From commit to searchable, with a real worker ---


def commit_to_searchable(times: int) -> dict[str, float]:
    from memories.actions.accounts import create_account
    from memories.actions.editing import add_memory

    account = create_account(username="in-a-hurry")
    taken = []
    with worker():
        for number in range(times + 1):
            body = f"The code word of door {number} is heron {number * 7919}."
            memory = add_memory(by=account, body=body)
            began = time.perf_counter()
            wait_until_found(account, body, memory.pk)
            if number:  # the first one loads the model
                taken.append((time.perf_counter() - began) * 1000)
    cuts = quantiles(taken, n=20, method="inclusive") if len(taken) > 1 else taken * 20
    return {"p50": round(cuts[9], 1), "p95": round(cuts[18], 1)}


def wait_until_found(account: "Account", body: str, memory_id: int) -> None:
    from embeddings.embedding import embed_query
    from recall.retrieval import recall_with
    from recall.scope import recall_scope

    asked, scope = embed_query(body, account_id=account.pk), recall_scope(account)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = recall_with(asked, account=account, text=body, scope=scope)
        # By words it would be found at once.
        if found.path == "semantic" and found.memories[0].memory.pk == memory_id:
            return
        time.sleep(0.005)
    raise SystemExit("A memory was not searchable in time; does the worker run?")


if __name__ == "__main__":
    main()
