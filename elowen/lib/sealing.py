"""Secrets at rest. What is sealed opens only with the installation's secret key."""

import base64

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.encoding import force_bytes

from elowen.lib.errors import Unavailable


class SealBroken(Unavailable):
    """A stored key cannot be read, because the installation's secret key is another one; enter it again."""

    code = "seal_broken"


def seal(secret: str) -> bytes:
    """Return what may be stored in place of the secret; never the same twice."""
    return _keys().encrypt(secret.encode())


def unseal(sealed: bytes) -> str:
    """Raises SealBroken when it was sealed with a secret key that is no longer known."""
    try:
        return _keys().decrypt(sealed).decode()
    except InvalidToken:
        raise SealBroken from None


def _keys() -> MultiFernet:
    """The current key seals, earlier ones still open."""
    return MultiFernet([_key(one) for one in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


def _key(secret_key: str | bytes) -> Fernet:
    material = force_bytes(secret_key)
    derived = HKDF(SHA256(), length=32, salt=None, info=b"elowen sealed secrets").derive(material)
    return Fernet(base64.urlsafe_b64encode(derived))
