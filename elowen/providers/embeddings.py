"""Texts in, vectors out, whichever model does the work."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from elowen.lib.errors import Invalid
from elowen.providers import local
from elowen.providers.endpoint import LOCAL, Endpoint
from elowen.providers.http import TIMEOUT_S, ContentRefused, InvalidAnswer, post_json
from elowen.providers.vectors import Vector

type OnPaid = Callable[[int | None], None]
type Send = Callable[[Sequence[str]], Vector]

QUERY_CHARS = 2_000


def embed_texts(
    endpoint: Endpoint,
    texts: Sequence[str],
    *,
    query: bool = False,
    allow_link_local: bool = False,
    timeout_s: float = TIMEOUT_S,
    on_paid: OnPaid | None = None,
) -> Vector:
    """Return one L2-normalised float32 row per text, in input order, from one request.

    Args:
        query: the texts are questions, of which the first QUERY_CHARS characters count.
        on_paid: called with the tokens used, or None where the server does not say, as soon as
            an endpoint has answered and before its rows are looked at. Bundled models cost nothing.
    Raises:
        Invalid: a text is empty or blank.
        ProviderFailed: in one of its kinds.
    """
    if query:
        texts = [text[:QUERY_CHARS] for text in texts]
    if any(not text.strip() for text in texts):
        raise Invalid("An empty text has no vector.")
    if not texts:
        return np.empty((0, endpoint.width or 0), np.float32)
    if endpoint.provider == LOCAL:
        return local.embedder_at(endpoint.url).embed(texts)
    answer = post_json(
        endpoint.url,
        request(endpoint, texts),
        key=endpoint.key,
        timeout_s=timeout_s,
        allow_link_local=allow_link_local,
    )
    if on_paid:
        on_paid(tokens_used(answer))
    return normalised(rows_in_order(answer, len(texts)), endpoint.width)


def embed_documents_narrowing(send: Send, texts: Sequence[str]) -> list[Vector | None]:
    """Return one row per text; None stands for a text that is refused even alone.

    A refused request is halved until the texts at fault are found. Several texts and not one row
    mean that the endpoint accepts nothing, rather than that every text is bad.

    Args:
        send: makes one request, as `embed_texts` does for its endpoint.
    """
    try:
        return list(send(texts))
    except ContentRefused:
        if len(texts) == 1:
            return [None]
    middle = len(texts) // 2
    halves = texts[:middle], texts[middle:]
    return [row for half in halves for row in embed_documents_narrowing(send, half)]


def request(endpoint: Endpoint, texts: Sequence[str]) -> dict[str, object]:
    # `dimensions` only on demand: vLLM refuses even the model's own width.
    wanted: dict[str, object] = {"dimensions": endpoint.width} if endpoint.width else {}
    return {"model": endpoint.model, "input": list(texts), "encoding_format": "float"} | wanted


def tokens_used(answer: Any) -> int | None:
    usage = answer.get("usage") if isinstance(answer, dict) else None
    tokens = usage.get("total_tokens", usage.get("prompt_tokens")) if isinstance(usage, dict) else None
    return tokens if type(tokens) is int and tokens >= 0 else None


def rows_in_order(answer: Any, count: int) -> list[Any]:
    """Return the raw rows of an answer in the order of the texts."""
    rows = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidAnswer("The answer has no list of vectors.")
    if len(rows) != count:
        raise InvalidAnswer(f"The answer has {len(rows)} vectors for {count} texts.")
    places = [row.get("index") for row in rows]
    if places != [None] * count:
        if any(type(place) is not int for place in places) or sorted(places) != list(range(count)):
            raise InvalidAnswer("The answer does not say which vector belongs to which text.")
        rows = sorted(rows, key=lambda row: row["index"])
    return [row.get("embedding") for row in rows]


def normalised(rows: list[Any], width: int | None) -> Vector:
    """Check raw rows and return them at length 1."""
    if not all(isinstance(row, list) and set(map(type, row)) <= {int, float} for row in rows):
        raise InvalidAnswer("A vector of the answer is not a list of numbers.")
    widths = {len(row) for row in rows}
    if len(widths) > 1 or 0 in widths:
        raise InvalidAnswer("The vectors of the answer are empty or differ in width.")
    if width and widths != {width}:
        raise InvalidAnswer(f"The vectors are {widths.pop()} wide instead of {width}.")
    return unit_rows(rows)


def unit_rows(rows: list[list[float]]) -> Vector:
    try:
        matrix = np.array(rows, np.float64)
    except OverflowError:
        raise InvalidAnswer("A vector of the answer is not finite.") from None
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise InvalidAnswer("A vector of the answer is not finite.")
    if not lengths.all():
        raise InvalidAnswer("A vector of the answer is zero, which has no direction.")
    return (matrix / lengths).astype(np.float32)
