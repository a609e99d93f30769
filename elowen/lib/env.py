"""Reads the environment once and refuses odd values with a sentence that says what to do."""

import os
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

TRUE, FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off", ""}


class BadEnvironment(Exception):
    """An environment variable has a value that Elowen cannot use."""


def env_str(name: str, default: str = "") -> str:
    return os.environ.get(name, default).strip()


def env_bool(name: str, default: bool = False) -> bool:
    value = os.environ.get(name, str(default)).strip().lower()
    if value in TRUE | FALSE:
        return value in TRUE
    raise BadEnvironment(f"{name} is {value!r}; set it to 1 or 0.")


def env_int(name: str, default: int, *, low: int, high: int) -> int:
    value = os.environ.get(name, str(default)).strip()
    if value.isascii() and value.isdigit() and low <= int(value) <= high:
        return int(value)
    raise BadEnvironment(f"{name} is {value!r}; set it to a whole number from {low} to {high}.")


def env_list(name: str, default: str = "") -> list[str]:
    return [part.strip() for part in os.environ.get(name, default).split(",") if part.strip()]


def env_choice(name: str, default: str, choices: tuple[str, ...]) -> str:
    value = env_str(name, default)
    if value in choices:
        return value
    raise BadEnvironment(f"{name} is {value!r}; set it to one of {', '.join(choices)}.")


def env_secret(name: str) -> str | None:
    """Return the secret in NAME, or in the file that NAME_FILE points to, or None."""
    value, path = env_str(name), env_str(f"{name}_FILE")
    if value and path:
        raise BadEnvironment(f"Both {name} and {name}_FILE are set; keep one of them.")
    if path:
        try:
            value = Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise BadEnvironment(f"{name}_FILE cannot be read: {error.strerror}.") from error
    return value or None


def required_secret(name: str) -> str:
    value = env_secret(name)
    if value is None:
        raise BadEnvironment(f"{name} is not set; `python3 manage.py up` makes one, or set it yourself.")
    return value


def database_from_url(url: str) -> dict[str, object]:
    """Return Django's database settings for `postgresql://user:password@host:port/name?option=value`.

    A `host` option (a socket folder) wins over the host of the address.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql") or not parts.path.strip("/"):
        raise BadEnvironment(
            "DATABASE_URL must look like postgresql://user:password@host:5432/name; "
            "unset it to let `python3 manage.py up` bring its own database."
        )
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", parts.hostname or ""),
        "PORT": str(parts.port or options.pop("port", "")),
        "OPTIONS": options,
    }
