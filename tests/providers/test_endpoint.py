from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elowen.lib.errors import Invalid
from elowen.providers.endpoint import Endpoint, InvalidEndpoint, embeddings_url, endpoint_fingerprint


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://localhost:11434", "http://localhost:11434/v1/embeddings"),
        ("http://localhost:11434/", "http://localhost:11434/v1/embeddings"),
        ("http://localhost:11434/v1", "http://localhost:11434/v1/embeddings"),
        ("http://localhost:11434/v1/", "http://localhost:11434/v1/embeddings"),
        ("  https://Api.Example.COM/v1 ", "https://api.example.com/v1/embeddings"),
        ("HTTPS://host/Some/Path", "https://host/Some/Path/v1/embeddings"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/embeddings"),
        ("http://host/v1beta", "http://host/v1beta/v1/embeddings"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1/embeddings"),
        ("http://xn--bcher-kva.example", "http://xn--bcher-kva.example/v1/embeddings"),
    ],
)
def test_a_base_leads_to_one_request_address(base: str, url: str) -> None:
    assert embeddings_url(base) == url


@pytest.mark.parametrize(
    ("base", "complaint"),
    [
        ("", "plain ASCII"),
        ("localhost:11434", "http://"),
        ("//host", "http://"),
        ("ftp://host", "http://"),
        ("file:///etc/passwd", "http://"),
        ("local:minilm-l6-int8-1", "http://"),
        ("http://", "no host"),
        ("http:///v1", "no host"),
        ("http://:8080", "no host"),
        ("http://ada:secret@host", "name or a password"),
        ("http://ada@host", "name or a password"),
        ("http://@host", "name or a password"),
        ("http://host/#part", "fragment"),
        ("http://host/#", "fragment"),
        ("http://host/?api_key=secret", "query"),
        ("http://host:port", "port"),
        ("http://host:70000", "port"),
        ("http://[::1", "host"),
        ("http://[not-an-address]", "host"),
        ("http://ho st", "spaces"),
        ("http://host/\r\nX-Header: 1", "plain ASCII"),
        ("http://bücher.example", "plain ASCII"),
        ("http://host\\@other", "plain ASCII"),
        ("http://host/\x00", "plain ASCII"),
    ],
)
def test_a_base_that_cannot_be_used_is_refused_with_a_reason(base: str, complaint: str) -> None:
    with pytest.raises(InvalidEndpoint, match=complaint) as refusal:
        embeddings_url(base)

    assert isinstance(refusal.value, Invalid)
    assert "secret" not in str(refusal.value)


@given(st.text(max_size=60) | st.text(max_size=40).map(lambda rest: f"http://{rest}"))
def test_any_base_gives_a_clean_address_or_a_refusal(base: str) -> None:
    try:
        url = embeddings_url(base)
    except InvalidEndpoint:
        return

    parts = urlsplit(url)
    assert url.isascii()
    assert parts.scheme in ("http", "https")
    assert parts.hostname
    assert parts.path.endswith("/v1/embeddings")
    assert not {"@", "?", "#"} & set(url)
    assert embeddings_url(url.removesuffix("/embeddings")) == url


def test_the_fingerprint_is_of_the_address_alone() -> None:
    fingerprint = endpoint_fingerprint("http://localhost:11434/v1/embeddings")

    assert len(fingerprint) == 32
    assert fingerprint == endpoint_fingerprint(embeddings_url("HTTP://LOCALHOST:11434/v1/"))
    assert fingerprint != endpoint_fingerprint("http://localhost:11435/v1/embeddings")


def test_an_endpoint_does_not_show_its_key() -> None:
    endpoint = Endpoint("openai", "https://api.example.com/v1/embeddings", "small", key="sk-hidden")

    assert "sk-hidden" not in repr(endpoint)
    assert "sk-hidden" not in f"{endpoint}"
    assert replace(endpoint, width=256).key == "sk-hidden"
