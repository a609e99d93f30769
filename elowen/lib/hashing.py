"""Identities of texts."""

from hashlib import sha256


def text_hash(text: str) -> bytes:
    """Return the 32 bytes of the SHA-256 of the text's exact UTF-8 form."""
    return sha256(text.encode()).digest()


def text_hash_hex(text: str) -> str:
    return text_hash(text).hex()
