import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from elowen.lib.errors import Invalid
from elowen.providers.embeddings import embed_documents_narrowing, embed_texts
from elowen.providers.endpoint import Endpoint, InvalidEndpoint
from elowen.providers.http import (
    ContentRefused,
    InvalidAnswer,
    KeyRefused,
    ProviderFailed,
    RateLimited,
    TransportFailed,
)
from elowen.providers.local import local_endpoint
from tests.fakes.server import (
    FakeServer,
    Received,
    Rows,
    gives,
    gives_vectors,
    holds,
    refuses,
    refuses_texts,
    resets,
    vector_of,
)

TEXTS = ["the cat sleeps", "the dog barks", "rain in May"]


@pytest.fixture
def endpoint(server: FakeServer) -> Endpoint:
    return Endpoint(provider="own", url=server.url, model="small", key="sk-1")


def test_one_request_gives_one_unit_row_per_text_in_order(server: FakeServer, endpoint: Endpoint) -> None:
    rows = embed_texts(endpoint, TEXTS)

    assert rows.dtype == np.float32
    assert np.allclose(rows, [vector_of(text, model="small") for text in TEXTS], atol=1e-6)
    assert [request.json for request in server.requests] == [
        {"model": "small", "input": TEXTS, "encoding_format": "float"}
    ]


def test_rows_are_sorted_by_their_index(server: FakeServer, endpoint: Endpoint) -> None:
    expected = embed_texts(endpoint, TEXTS)
    server.always(gives_vectors(change=lambda rows: [rows[2], rows[0], rows[1]]))

    assert np.array_equal(embed_texts(endpoint, TEXTS), expected)


def test_rows_without_an_index_are_taken_as_they_come(server: FakeServer, endpoint: Endpoint) -> None:
    expected = embed_texts(endpoint, TEXTS)
    server.always(gives_vectors(change=lambda rows: [{"embedding": row["embedding"]} for row in rows]))

    assert np.array_equal(embed_texts(endpoint, TEXTS), expected)


def test_rows_of_any_length_are_normalised(server: FakeServer, endpoint: Endpoint) -> None:
    server.always(
        gives({"data": [{"embedding": [3, 4.0]}, {"embedding": [0, -1e-30]}, {"embedding": [1e150, 0]}]})
    )

    rows = embed_texts(endpoint, TEXTS)

    assert np.allclose(rows, [[0.6, 0.8], [0.0, -1.0], [1.0, 0.0]])


def test_a_width_is_asked_for_only_when_there_is_one(server: FakeServer, endpoint: Endpoint) -> None:
    rows = embed_texts(replace(endpoint, width=5), TEXTS)

    assert rows.shape == (3, 5)
    assert server.requests[0].json["dimensions"] == 5


def test_a_server_that_ignores_the_width_is_refused(server: FakeServer, endpoint: Endpoint) -> None:
    server.always(gives({"data": [{"embedding": [1.0] * 8}]}))

    with pytest.raises(InvalidAnswer, match="8 wide instead of 5"):
        embed_texts(replace(endpoint, width=5), ["one"])


def changed(**values: Any) -> Callable[[Rows], Rows]:
    return lambda rows: [rows[0] | values, *rows[1:]]


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[:-1],
        lambda rows: [*rows, rows[0]],
        lambda rows: [],
        lambda rows: None,
        lambda rows: {"0": rows[0]},
        lambda rows: [row["embedding"] for row in rows],
        lambda rows: [rows[0], rows[0], rows[2]],
        lambda rows: [row | {"index": row["index"] + 1} for row in rows],
        lambda rows: [{"embedding": rows[0]["embedding"]}, *rows[1:]],
        changed(index="0"),
        changed(index=0.0),
        changed(index=False),
        changed(index=-1),
        changed(index=[]),
        changed(embedding=[]),
        changed(embedding=None),
        changed(embedding="AACAPwAAAAA="),
        changed(embedding={"0": 1.0}),
        changed(embedding=[1.0] * 7),
        changed(embedding=[1.0] * 9),
        changed(embedding=[[1.0] * 8]),
        changed(embedding=["1.0"] * 8),
        changed(embedding=[True] * 8),
        changed(embedding=[None] * 8),
        changed(embedding=[0.0] * 8),
        changed(embedding=[1e-320] * 8),
        changed(embedding=[float("nan")] + [1.0] * 7),
        changed(embedding=[float("inf")] + [1.0] * 7),
        changed(embedding=[float("-inf")] + [1.0] * 7),
        changed(embedding=[10**400] + [1.0] * 7),
        changed(embedding=[1e308] * 8),
    ],
)
def test_rows_that_cannot_be_trusted_are_refused(
    server: FakeServer, endpoint: Endpoint, change: Callable[[Rows], Any]
) -> None:
    server.always(gives_vectors(change=change))

    with pytest.raises(InvalidAnswer):
        embed_texts(endpoint, TEXTS)

    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"null", b"[]", b'"data"', b"{}", b'{"error": "busy"}', b'{"data": 3}', b'{"data": [1]}'],
)
def test_answers_of_another_shape_are_refused(server: FakeServer, endpoint: Endpoint, body: bytes) -> None:
    server.always(gives(body))

    with pytest.raises(InvalidAnswer):
        embed_texts(endpoint, ["one"])


def test_rows_without_numbers_are_refused(server: FakeServer, endpoint: Endpoint) -> None:
    server.always(gives_vectors(width=0))

    with pytest.raises(InvalidAnswer, match="empty"):
        embed_texts(endpoint, TEXTS)


@pytest.mark.parametrize(
    ("status", "kind"), [(429, RateLimited), (503, TransportFailed), (401, KeyRefused), (400, ContentRefused)]
)
def test_a_refusal_is_not_retried(
    server: FakeServer, endpoint: Endpoint, status: int, kind: type[ProviderFailed]
) -> None:
    server.then(refuses(status, headers={"Retry-After": "0"}))

    with pytest.raises(kind):
        embed_texts(endpoint, TEXTS)

    assert len(server.requests) == 1


@pytest.mark.parametrize("texts", [[""], ["fine", ""], ["  \n\t"], ["\u3000"]])
def test_an_empty_text_is_never_sent(server: FakeServer, endpoint: Endpoint, texts: list[str]) -> None:
    for place in (endpoint, local_endpoint("english")):
        with pytest.raises(Invalid):
            embed_texts(place, texts)
    with pytest.raises(Invalid):
        embed_texts(endpoint, [" " * 2_000 + "too late"], query=True)

    assert server.requests == []


def test_no_texts_are_no_request(server: FakeServer, endpoint: Endpoint) -> None:
    assert embed_texts(replace(endpoint, width=5), []).shape == (0, 5)
    assert embed_documents_narrowing(partial(embed_texts, endpoint), []) == []
    assert server.requests == []


def test_only_the_head_of_a_long_question_is_sent(server: FakeServer, endpoint: Endpoint) -> None:
    embed_texts(endpoint, ["x" * 5_000], query=True)
    embed_texts(endpoint, ["x" * 5_000])

    assert [len(request.texts[0]) for request in server.requests] == [2_000, 5_000]


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"total_tokens": 9, "prompt_tokens": 8}, 9),
        ({"prompt_tokens": 8}, 8),
        ({}, None),
        ({"total_tokens": "9"}, None),
        ({"total_tokens": -1}, None),
        ({"total_tokens": True}, None),
        ("nine", None),
        (None, None),
    ],
)
def test_the_tokens_of_an_answer_are_told(
    server: FakeServer, endpoint: Endpoint, usage: object, tokens: int | None
) -> None:
    server.always(gives({"data": [{"embedding": [1.0]}], "usage": usage}))
    paid: list[int | None] = []

    embed_texts(endpoint, ["one"], on_paid=paid.append)

    assert paid == [tokens]


def test_an_answer_is_paid_for_even_when_its_rows_are_refused(server: FakeServer, endpoint: Endpoint) -> None:
    paid: list[int | None] = []
    server.then(gives_vectors(change=lambda rows: [], tokens=4), refuses(429), resets())

    for _ in range(3):
        with pytest.raises(ProviderFailed):
            embed_texts(endpoint, TEXTS, on_paid=paid.append)

    assert paid == [4]


def test_a_bundled_model_costs_nothing_and_needs_no_network() -> None:
    paid: list[int | None] = []

    rows = embed_texts(local_endpoint("english"), TEXTS, on_paid=paid.append)

    assert rows.shape == (3, 384)
    assert paid == []


def test_an_unknown_bundled_model_is_refused() -> None:
    with pytest.raises(InvalidEndpoint):
        embed_texts(Endpoint("local", "local:word2vec", "word2vec"), TEXTS)


def sizes(requests: list[Received]) -> list[int]:
    return [len(request.texts) for request in requests]


def test_a_refused_batch_is_narrowed_to_the_texts_at_fault(server: FakeServer, endpoint: Endpoint) -> None:
    texts = [f"text {number}" for number in range(8)]
    texts[5] = "poison"
    server.always(refuses_texts(lambda text: text == "poison"))
    paid: list[int | None] = []

    rows = embed_documents_narrowing(partial(embed_texts, endpoint, on_paid=paid.append), texts)

    assert [place for place, row in enumerate(rows) if row is None] == [5]
    for row, text in zip(rows, texts, strict=True):
        assert row is None or np.allclose(row, vector_of(text, model="small"), atol=1e-6)
    assert sizes(server.requests) == [8, 4, 4, 2, 1, 1, 2]
    assert paid == [7] * 3


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_server_that_takes_fewer_texts_gets_fewer(
    server: FakeServer, endpoint: Endpoint, status: int
) -> None:
    def small_batches(request: Received) -> Any:
        script = gives_vectors() if len(request.texts) <= 3 else refuses(status)
        return script(request)

    server.always(small_batches)

    send = partial(embed_texts, endpoint)
    rows = embed_documents_narrowing(send, [f"text {number}" for number in range(10)])

    assert all(row is not None for row in rows)
    assert sizes(server.requests) == [10, 5, 2, 3, 5, 2, 3]


def test_a_server_that_refuses_everything_gives_no_row(server: FakeServer, endpoint: Endpoint) -> None:
    server.always(refuses(400))

    assert embed_documents_narrowing(partial(embed_texts, endpoint), TEXTS) == [None] * 3
    assert embed_documents_narrowing(partial(embed_texts, endpoint), ["one"]) == [None]


@pytest.mark.parametrize("script", [refuses(429), refuses(503), refuses(401), resets(), gives(b"?")])
def test_only_a_refused_content_is_narrowed(server: FakeServer, endpoint: Endpoint, script: Any) -> None:
    server.always(script)

    with pytest.raises(ProviderFailed):
        embed_documents_narrowing(partial(embed_texts, endpoint), TEXTS)

    assert len(server.requests) == 1


def test_a_failure_while_narrowing_ends_it(server: FakeServer, endpoint: Endpoint) -> None:
    server.then(refuses(413), gives_vectors(), refuses(429))

    with pytest.raises(RateLimited):
        embed_documents_narrowing(partial(embed_texts, endpoint), TEXTS)

    assert len(server.requests) == 3


def test_the_callers_timeout_counts(server: FakeServer, endpoint: Endpoint) -> None:
    release = threading.Event()
    server.always(holds(release))

    with pytest.raises(TransportFailed, match="in time"):
        embed_documents_narrowing(partial(embed_texts, endpoint, timeout_s=0.2), TEXTS)

    release.set()


def test_a_link_local_server_needs_the_operators_word(server: FakeServer, endpoint: Endpoint) -> None:
    anywhere = replace(endpoint, url=f"http://0.0.0.0:{server.port}/v1/embeddings")

    with pytest.raises(ProviderFailed):
        embed_texts(anywhere, TEXTS)
    rows = embed_documents_narrowing(partial(embed_texts, anywhere, allow_link_local=True), TEXTS)

    assert len(rows) == 3
    assert len(server.requests) == 1


def test_requests_of_many_threads_do_not_mix(server: FakeServer, endpoint: Endpoint) -> None:
    texts = [f"text {number}" for number in range(40)]

    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda text: embed_texts(endpoint, [text])[0], texts))

    assert np.allclose(rows, [vector_of(text, model="small") for text in texts], atol=1e-6)


def test_a_text_with_every_kind_of_character_arrives_unchanged(
    server: FakeServer, endpoint: Endpoint
) -> None:
    text = 'quotes " \\ control \x01 emoji 😀 漢字 \u2028 end'

    embed_texts(endpoint, [text])

    assert json.loads(server.requests[0].body)["input"] == [text]
