"""The only place that opens a connection to a provider."""

import json
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

import certifi
import httpcore

from elowen.lib.secret import Secret
from elowen.providers.errors import (
    AddressRefused,
    ContentRefused,
    InvalidAnswer,
    KeyRefused,
    ProviderFailed,
    RateLimited,
    TransportFailed,
)
from elowen.providers.network import CheckedNetwork, Deadline

TIMEOUT_S = 30.0
MAX_ANSWER_BYTES = 32_000_000  # 128 rows of 8,192 numbers in full decimals
MAX_REFUSAL_BYTES = 64_000
MAX_RETRY_AFTER_S = 7 * 86_400.0
HEADER_SAFE = re.compile(r"[!-~]+")
# Nothing else of a refusal is repeated: servers quote texts and keys.
REASONS = {
    "billing_hard_limit_reached",
    "context_length_exceeded",
    "exceed_context_size_error",
    "insufficient_quota",
    "invalid_api_key",
    "model_not_found",
    "rate_limit_exceeded",
}

__all__ = [
    "AddressRefused",
    "ContentRefused",
    "InvalidAnswer",
    "KeyRefused",
    "ProviderFailed",
    "RateLimited",
    "TransportFailed",
    "post_json",
]

type Headers = Mapping[str, str]


def post_json(
    url: str,
    payload: Mapping[str, object],
    *,
    key: str | None,
    timeout_s: float = TIMEOUT_S,
    allow_link_local: bool = False,
) -> Any:
    """Send one request and return the parsed answer. Nothing is retried, no redirect followed.

    Args:
        timeout_s: for the whole exchange, connecting included.
    Raises:
        ProviderFailed: in one of its kinds.
    """
    body = json.dumps(payload, ensure_ascii=False).encode(errors="replace")
    network = CheckedNetwork(Deadline(timeout_s), allow_link_local=allow_link_local)
    try:
        outcome = outcome_of(*exchange(url, body, request_headers(key), network))
    except httpcore.TimeoutException:
        raise TransportFailed("The provider did not answer in time.") from None
    except httpcore.ConnectError as error:
        raise TransportFailed(why_unreachable(error)) from None
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol):
        raise TransportFailed("The provider broke off, or does not speak HTTP.") from None
    if isinstance(outcome, ProviderFailed):
        raise outcome
    return outcome


def request_headers(key: str | None) -> dict[str, str]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "elowen",
        "Connection": "close",
    }
    if key is None:
        return headers
    if not HEADER_SAFE.fullmatch(key):
        raise KeyRefused("The key holds a character that cannot be sent; copy it again.")
    return headers | {"Authorization": Secret(f"Bearer {key}")}


def exchange(
    url: str, body: bytes, headers: Headers, network: CheckedNetwork
) -> tuple[int, dict[str, str], bytes]:
    with (
        httpcore.ConnectionPool(ssl_context=tls(), network_backend=network) as pool,
        pool.stream("POST", url, headers=list(headers.items()), content=body) as response,
    ):
        received = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers
        }
        return response.status, received, read_bounded(response)


def read_bounded(response: httpcore.Response) -> bytes:
    """Read the answer; the head of it is enough where it is a refusal."""
    good = response.status // 100 == 2
    answer = bytearray()
    for chunk in response.iter_stream():
        answer += chunk
        if not good and len(answer) > MAX_REFUSAL_BYTES:
            break
        if len(answer) > MAX_ANSWER_BYTES:
            raise InvalidAnswer(f"The answer is larger than {MAX_ANSWER_BYTES:,} bytes.")
    return bytes(answer)


@cache
def tls() -> ssl.SSLContext:
    # What the system trusts (SSL_CERT_FILE adds a private authority), and a list for systems without one.
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def outcome_of(status: int, headers: Headers, answer: bytes) -> Any:
    """Return what the answer holds, or what is wrong with it.

    Nothing is raised where the answer is at hand: it may quote texts and keys, and reports show variables.
    """
    if status // 100 != 2:
        return refusal(status, headers, answer)
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return InvalidAnswer("The provider answered something that is not JSON.")


def why_unreachable(error: httpcore.ConnectError) -> str:
    if isinstance(error.__context__, ssl.SSLError):
        return "The provider's certificate cannot be trusted, or it does not speak TLS."
    return "The provider cannot be reached; check its address and that it runs."


def refusal(status: int, headers: Headers, answer: bytes) -> ProviderFailed:
    kind, reason = refusal_kind(status, answer), reason_of(answer)
    message = f"{kind.__doc__} It answered {status}{f' ({reason})' if reason else ''}."
    return kind(message, status=status, retry_after_s=retry_after_s(headers.get("retry-after", "")))


def refusal_kind(status: int, answer: bytes) -> type[ProviderFailed]:
    if status in (401, 403):
        return KeyRefused
    if status in (402, 429):
        return RateLimited
    # llama.cpp calls a text longer than its physical batch a server error.
    if status in (400, 413, 422) or (status == 500 and b"too large to process" in answer):
        return ContentRefused
    if status >= 500 or status in (408, 424, 425):
        return TransportFailed
    return InvalidAnswer


def reason_of(answer: bytes) -> str | None:
    """Find one of the known reasons where OpenAI and the servers like it put them."""
    try:
        body = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    places = [body.get("error"), body] if isinstance(body, dict) else []
    words = [place.get(name) for place in places if isinstance(place, dict) for name in ("code", "type")]
    return next((word for word in words if isinstance(word, str) and word in REASONS), None)


def retry_after_s(value: str) -> float | None:
    """Read both forms of Retry-After: seconds, or a date."""
    try:
        seconds = float(value) if re.fullmatch(r"[0-9]{1,12}(\.[0-9]+)?", value) else seconds_until(value)
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_S)


def seconds_until(date: str) -> float:
    at = parsedate_to_datetime(date)
    return (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
