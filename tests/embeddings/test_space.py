import pytest

from elowen.lib.errors import Invalid
from elowen.providers.endpoint import Endpoint, embeddings_url
from embeddings.config import EmbeddingConfig, parse
from embeddings.space import EmbeddingSpaceChanged, VectorSpace, assert_space, space_of

ENDPOINT = Endpoint(provider="endpoint", url="https://host/v1/embeddings", model="m", width=8, key="secret")


def test_a_space_is_free_of_secrets_and_the_key_is_no_part_of_it() -> None:
    other_key = Endpoint("endpoint", ENDPOINT.url, "m", 8, "another")

    assert space_of(ENDPOINT) == space_of(other_key)
    assert "secret" not in repr(space_of(ENDPOINT))


@pytest.mark.parametrize(
    "other",
    [
        Endpoint("local", ENDPOINT.url, "m", 8),
        Endpoint("endpoint", "https://other/v1/embeddings", "m", 8),
        Endpoint("endpoint", ENDPOINT.url, "n", 8),
        Endpoint("endpoint", ENDPOINT.url, "m", 9),
        Endpoint("endpoint", ENDPOINT.url, "m", None),
    ],
)
def test_any_other_part_makes_another_space(other: Endpoint) -> None:
    with pytest.raises(EmbeddingSpaceChanged):
        assert_space(space_of(other), space_of(ENDPOINT))


@pytest.mark.parametrize("base", ["http://host", "http://host/", "http://host/v1", "http://HOST/v1/"])
def test_ways_to_write_one_address_are_one_space(base: str) -> None:
    space: VectorSpace = space_of(Endpoint("endpoint", embeddings_url(base), "m"))

    assert space == space_of(Endpoint("endpoint", "http://host/v1/embeddings", "m"))


def test_a_document_survives_the_way_there_and_back() -> None:
    config = EmbeddingConfig("endpoint", "m", "http://host", 8)

    assert parse(config.to_document()) == config
    assert parse({}) == EmbeddingConfig()


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"providerId": "x"}, "providerId"),
        ({"providerId": "endpoint", "baseUrl": "http://h"}, "model"),
        ({"providerId": "endpoint", "model": "m"}, "baseUrl"),
        ({"providerId": "endpoint", "model": "m", "baseUrl": "http://u:p@h"}, "baseUrl"),
        ({"providerId": "endpoint", "model": "m", "baseUrl": "http://h", "dimensions": True}, "dimensions"),
        ({"providerId": "local", "model": "m"}, "model"),
    ],
)
def test_a_bad_document_names_the_key_at_fault(document: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse(document)

    assert caught.value.field == field
