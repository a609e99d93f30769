"""How a provider fails.

No message holds a key, a text that was sent, or words of the answer: they end up in logs and on pages.
"""

from elowen.lib.errors import Unavailable


class ProviderFailed(Unavailable):
    """The provider did not do its work."""

    def __init__(self, message: str = "", *, status: int | None = None, retry_after_s: float | None = None):
        """`status` is that of the answer, if there was one; before `retry_after_s` it wants no request."""
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


class RateLimited(ProviderFailed):
    """The provider takes no more requests with this key right now."""

    code = "rate_limited"


class KeyRefused(ProviderFailed):
    """The provider does not accept the key."""

    code = "key_refused"


class ContentRefused(ProviderFailed):
    """The provider does not accept this request's content; another content may pass."""

    code = "content_refused"


class TransportFailed(ProviderFailed):
    """The provider could not be reached, broke off, or failed inside; the work may have been done."""

    code = "transport_failed"


class InvalidAnswer(ProviderFailed):
    """The provider answered something that cannot be used."""

    code = "invalid_answer"


class AddressRefused(ProviderFailed):
    """The provider's host leads to an address that Elowen does not connect to."""

    code = "address_refused"
