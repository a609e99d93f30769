from collections.abc import Callable

from django.utils import timezone

from memories.actions.purging import expire_replies, expire_uses


def expire() -> None:
    """Delete usage events past 90 days and remembered replies past 24 hours, a bounded batch at a time."""
    for expire_batch in (expire_uses, expire_replies):
        _until_done(expire_batch)


def _until_done(expire_batch: Callable[..., int]) -> None:
    now = timezone.now()
    while expire_batch(now=now):
        pass
