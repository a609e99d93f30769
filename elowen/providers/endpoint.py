"""Where texts are sent to become vectors, and the identity of that place."""

import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from elowen.lib.errors import Invalid
from elowen.lib.hashing import text_hash

LOCAL = "local"
# The characters RFC 3986 knows, and no more: urlsplit would silently drop a line break.
URL = re.compile(r"[\w.~:/?#\[\]@!$&'()*+,;=%-]+", re.ASCII)
PATH = "/v1/embeddings"


class InvalidEndpoint(Invalid):
    """This is not the address of an embedding server."""

    code = "invalid_endpoint"


@dataclass(frozen=True)
class Endpoint:
    """One place to send texts to, already authorised."""

    provider: str  # "local" is a bundled model
    url: str  # exactly the address requests go to; "local:<embedder id>" for a bundled model
    model: str
    width: int | None = None  # asked for; None takes what the model gives
    key: str | None = field(default=None, repr=False)


def embeddings_url(base: str) -> str:
    """Return the exact address that requests for this base go to.

    A trailing slash and a trailing `/v1` of the base may be there or not.
    """
    parts = checked_base(base.strip())
    path = parts.path.removesuffix("/").removesuffix("/v1")
    return f"{parts.scheme}://{parts.netloc.lower()}{path}{PATH}"


def endpoint_fingerprint(url: str) -> bytes:
    """Return 32 bytes that stand for the exact request address; it never holds a secret."""
    return text_hash(url)


def checked_base(base: str) -> SplitResult:
    if not URL.fullmatch(base):
        raise InvalidEndpoint("Write the address in plain ASCII, without spaces (xn--… for other scripts).")
    try:
        parts = urlsplit(base)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InvalidEndpoint("The host or the port of the address cannot be read.") from None
    if parts.scheme not in ("http", "https"):
        raise InvalidEndpoint("The address has to start with http:// or https://.")
    if "@" in parts.netloc:
        raise InvalidEndpoint("The address must not hold a name or a password; give the key apart from it.")
    if not host:
        raise InvalidEndpoint("The address names no host.")
    if "?" in base or "#" in base:
        raise InvalidEndpoint("The address must not have a query or a fragment.")
    return parts
