"""Search for the way: the pages of this service and the sections of its help, by meaning and by words."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from elowen.help import articles
from elowen.lib.errors import Unavailable
from elowen.lib.hashing import text_hash
from elowen.sitemap import PAGES
from embeddings.embedding import QueryVector, embed_query
from embeddings.scoring import vector_cursor, vector_param
from memories.models import Account
from recall.config import load_limits
from recall.keyword import clean_query

PAGE, HELP = KINDS = ("pages", "help")  # which are the names of the corpora, too
MEANING, WORDS = 0.6, 0.4  # shares of a place in the answer
IN_TEXT = 0.6  # what a word in the text counts, beside 1 for one in the title
EXCERPT_CHARS = 160
WORD = re.compile(r"\w+")

COSINES = """
    SELECT text_hash, 1 - (vec <=> %(query)s::halfvec) FROM embeddings_corpusvector
    WHERE space_id = %(space)s AND corpus = ANY(%(corpora)s)
"""


@dataclass(frozen=True)
class Item:
    kind: str
    title: str
    text: str
    url: str
    staff_only: bool

    @property
    def document(self) -> str:
        return f"{self.title}. {self.text}"


@dataclass(frozen=True)
class Found:
    item: Item
    score: float
    excerpt: str


@cache
def items() -> tuple[Item, ...]:
    return (*page_items(), *help_items())


def page_items() -> Iterator[Item]:
    for page in PAGES:
        yield Item(PAGE, page.title, page.about, page.url, page.staff_only)


def help_items() -> Iterator[Item]:
    """Sections of the help, without the records of decisions, which explain and do not help."""
    for article in articles().values():
        for section in article.sections if not article.is_decision else ():
            above = "" if section.title == article.title else f"{article.title}: "
            yield Item(HELP, above + section.title, section.text, section.url, staff_only=False)


def documents(kind: str) -> list[str]:
    return [item.document for item in items() if item.kind == kind]


def find(account: Account, query: str, *, limit: int) -> tuple[list[Found], str]:
    """Return where the account may go and what it may read, best first, and the path taken."""
    text = clean_query(query)
    if not text:
        return [], "empty"
    open_to = [item for item in items() if account.is_staff or not item.staff_only]
    words = word_scores(text, open_to)
    cosines = cosines_of(account, text)
    if cosines:
        scored, path = blended(open_to, words, cosines), "semantic"
    else:
        scored, path = {item: words[item] for item in open_to if words[item] > 0}, "keyword"
    best = sorted(scored, key=lambda item: (-scored[item], item.url))[:limit]
    return [Found(item, round(scored[item], 4), excerpt(item, text)) for item in best], path


def cosines_of(account: Account, text: str) -> dict[bytes, float]:
    """Return the cosine of each document by its hash; nothing where the model or the index cannot help."""
    try:
        vector = embed_query(text, account_id=account.pk)
    except Unavailable:
        return {}
    return nearness(vector)


def nearness(vector: QueryVector) -> dict[bytes, float]:
    values = {"query": vector_param(vector.vector), "space": vector.space.pk, "corpora": list(KINDS)}
    with vector_cursor() as cursor:
        return {bytes(digest): cosine for digest, cosine in cursor.execute(COSINES, values)}


def blended(
    open_to: list[Item], words: Mapping[Item, float], cosines: Mapping[bytes, float]
) -> dict[Item, float]:
    """Place by meaning and words together; what both say less for than the floor alone would is left out."""
    least, scored = MEANING * load_limits().floor, dict[Item, float]()
    for item in open_to:
        cosine = max(cosines.get(text_hash(item.document), 0.0), 0.0)
        score = MEANING * cosine + WORDS * words[item]
        if score >= least:
            scored[item] = score
    return scored


def word_scores(text: str, among: list[Item]) -> dict[Item, float]:
    """Return for each item which part of the query it holds, from 0 to 1; rare words count more."""
    wanted = set(WORD.findall(text.casefold()))
    held = {item: held_by(item, wanted) for item in among}
    worth = {
        word: math.log1p(len(among) / (1 + sum(word in one for one in held.values()))) for word in wanted
    }
    whole = sum(worth.values()) or 1.0
    return {item: sum(worth[word] * part for word, part in held[item].items()) / whole for item in among}


def held_by(item: Item, wanted: set[str]) -> dict[str, float]:
    """Return how much each wanted word counts that the item holds, whole or as the beginning of one."""
    title, text = item.title.casefold(), item.text.casefold()
    begins = {word: re.compile(rf"\b{re.escape(word)}") for word in wanted}
    parts = {w: 1.0 if at.search(title) else IN_TEXT if at.search(text) else 0.0 for w, at in begins.items()}
    return {word: part for word, part in parts.items() if part}


def excerpt(item: Item, text: str) -> str:
    """Return the line that holds most of the query, cut to what fits under a title."""
    wanted = set(WORD.findall(text.casefold()))
    lines = item.text.split("\n")
    best = max(lines, key=lambda line: len(wanted & set(WORD.findall(line.casefold()))))
    return best if len(best) <= EXCERPT_CHARS else best[: EXCERPT_CHARS - 1].rstrip() + "…"
