"""Texts that are the same for everybody, such as the help: found by meaning, indexed after all memories.

Whoever has such texts registers them under a name; the drain does the rest.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from hashlib import sha256

from django.utils import timezone

from elowen.lib.errors import Unavailable
from elowen.lib.hashing import text_hash
from elowen.providers.errors import ContentRefused
from embeddings.actions.storing import store_corpus, verify_corpus
from embeddings.connections import INSTANCE
from embeddings.embedding import Run, embed_batch
from embeddings.failures import Operation, failed
from embeddings.models import CorpusDigest, CorpusVector, EmbeddingSpace, FailureSequence
from embeddings.pending import (
    FIRST_BACK_OFF_S,
    MAX_DOUBLINGS,
    TEXT_CHARS,
    anything_due,
)

BATCH_TEXTS, BATCH_CHARS = 8, 12_000  # small: a memory that comes meanwhile waits for one batch

type Source = Callable[[], Iterable[str]]
type Texts = Mapping[bytes, str]  # by their hashes

CORPORA: dict[str, Source] = {}


def register(name: str, source: Source) -> None:
    """Have the texts of `source` indexed. It is called at every look, so it should remember them."""
    CORPORA[name] = source


def texts_of(name: str) -> Texts:
    return {text_hash(text): text for text in CORPORA[name]() if text.strip()}


def index_corpora(run: Run, *, until: float, holds_on: Callable[[], bool]) -> bool:
    """Index what the corpora lack, as long as no memory waits. Returns whether all of it may be had.

    Args:
        until: a time.monotonic() at which to stop.
        holds_on: renews the right to work; False ends it.
    Raises:
        EmbeddingSpaceChanged: the settings have changed; what is stored so far stays.
    """
    row = EmbeddingSpace.objects.row_of(run.space)
    wanted = {name: texts_of(name) for name in CORPORA}
    digests = {name: digest_of(texts, row) for name, texts in wanted.items()}
    known = CorpusDigest.objects.filter(corpus__in=wanted).values_list("corpus", "digest")
    verified = {name for name, digest in known if bytes(digest) == digests[name]}
    requests = 0
    for name in wanted.keys() - verified:
        for batch in batches(missing(name, wanted[name], row)):
            if requests and (anything_due() or time.monotonic() >= until):
                return False
            if not holds_on() or not index_texts(run, name, batch):
                return False
            requests += 1
        if not missing(name, wanted[name], row):
            verify_corpus(space=run.space, corpus=name, digest=digests[name], hashes=wanted[name].keys())
    return True


def digest_of(texts: Texts, space: EmbeddingSpace) -> bytes:
    return sha256(b"".join(sorted(texts)) + b"%d" % space.pk).digest()


def missing(name: str, texts: Texts, space: EmbeddingSpace) -> Texts:
    stored = CorpusVector.objects.filter(corpus=name, space=space, text_hash__in=list(texts))
    there = {bytes(one) for one in stored.values_list("text_hash", flat=True)}
    return {digest: text for digest, text in texts.items() if digest not in there}


def batches(texts: Texts) -> Iterator[dict[bytes, str]]:
    batch, size = dict[bytes, str](), 0
    for digest, text in texts.items():
        text = text[:TEXT_CHARS]
        if batch and (len(batch) == BATCH_TEXTS or size + len(text) > BATCH_CHARS):
            yield batch
            batch, size = {}, 0
        batch[digest] = text
        size += len(text)
    if batch:
        yield batch


def index_texts(run: Run, name: str, batch: Mapping[bytes, str]) -> bool:
    """Make one request and store what it gives. False: the model failed, and is left alone for a while."""
    rest = resting(name)
    batch = {digest: text for digest, text in batch.items() if subject_of(name, digest) not in rest}
    if name in rest or not batch:
        return name not in rest
    try:
        vectors = dict(zip(batch, embed_batch(run, list(batch.values()), identity=INSTANCE), strict=True))
        found = {digest: vector for digest, vector in vectors.items() if vector is not None}
        store_corpus(space=run.space, corpus=name, vectors=found)
    except Unavailable as error:
        failed(Operation.CORPUS, None, error, subject=name)
        return False
    for digest in vectors.keys() - found.keys():
        failed(Operation.CORPUS, None, ContentRefused(), subject=subject_of(name, digest))
    subjects = [name, *(subject_of(name, digest) for digest in found)]
    FailureSequence.objects.filter(operation=Operation.CORPUS, subject__in=subjects).delete()
    return True


def subject_of(name: str, digest: bytes) -> str:
    return f"{name}:{digest.hex()[:16]}"


def resting(name: str) -> set[str]:
    """Return what has failed and is not to be tried again yet: the corpus itself, or texts of it."""
    rows = FailureSequence.objects.filter(operation=Operation.CORPUS, subject__startswith=name)
    return {one.subject for one in rows if one.last_at + back_off(one.count) > timezone.now()}


def back_off(failures: int) -> timedelta:
    return timedelta(seconds=FIRST_BACK_OFF_S * 2 ** min(failures - 1, MAX_DOUBLINGS))
