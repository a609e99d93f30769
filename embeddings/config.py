"""Which model turns memories into vectors: a section of the settings document, frozen when it is read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from django.conf import settings

from elowen.lib.errors import Invalid, Unavailable
from elowen.lib.secret import Secret
from elowen.providers.catalog import PROVIDERS
from elowen.providers.endpoint import LOCAL, Endpoint, embeddings_url
from elowen.providers.local import Name, local_endpoint
from embeddings.space import VectorSpace, space_of
from memories.config import load_section

SECTION = "embedding"
ENDPOINT = "endpoint"
CHOICES = (LOCAL, ENDPOINT, *PROVIDERS)
MAX_MODEL_CHARS = 200
MAX_WIDTH = 16_000  # of a halfvec
MAX_RETRIES = 3


@dataclass(frozen=True)
class EmbeddingConfig:
    provider: str = LOCAL  # or ENDPOINT, or one of the catalogue, which connections serve
    model: str = ""  # empty for the bundled model, which the environment chooses
    base_url: str = ""
    width: int | None = None  # asked for; None takes what the model gives
    max_retries: int = MAX_RETRIES  # through other connections, after the first was refused

    @property
    def is_connected(self) -> bool:
        return self.provider in PROVIDERS

    def to_document(self) -> dict[str, Any]:
        return {
            "providerId": self.provider,
            "model": self.model,
            "baseUrl": self.base_url,
            "dimensions": self.width,
            "maxRetries": self.max_retries,
        }


def parse(document: Mapping[str, Any]) -> EmbeddingConfig:
    """Check a document and return what it says.

    Raises:
        Invalid: with the name of the key at fault.
    """
    provider = document.get("providerId", LOCAL)
    model, base_url = document.get("model", ""), document.get("baseUrl", "")
    width = document.get("dimensions")
    retries = checked_retries(document.get("maxRetries", MAX_RETRIES))
    if provider == LOCAL:
        return local_config(model, base_url, width)
    if provider not in CHOICES:
        raise Invalid(f"Choose one of {', '.join(CHOICES)}.", field="providerId")
    if not isinstance(model, str) or not 1 <= len(model.strip()) <= MAX_MODEL_CHARS:
        raise Invalid("Name the model as its server does.", field="model")
    if width is not None and (type(width) is not int or not 1 <= width <= MAX_WIDTH):
        raise Invalid(
            f"Dimensions run from 1 to {MAX_WIDTH:,}; leave it out for the model's own.", field="dimensions"
        )
    if provider in PROVIDERS and not base_url and PROVIDERS[provider].base_url:
        return EmbeddingConfig(provider, model.strip(), "", width, retries)
    return EmbeddingConfig(provider, model.strip(), checked_base_url(base_url), width, retries)


def local_config(model: object, base_url: object, width: object) -> EmbeddingConfig:
    for name, value in (("model", model), ("baseUrl", base_url), ("dimensions", width)):
        if value not in (None, ""):
            raise Invalid("The bundled model takes no such setting.", field=name)
    return EmbeddingConfig()


def checked_retries(retries: object) -> int:
    if type(retries) is not int or not 0 <= retries <= MAX_RETRIES:
        raise Invalid(f"A refused request is asked again 0 to {MAX_RETRIES} times.", field="maxRetries")
    return retries


def checked_base_url(base_url: object) -> str:
    if not isinstance(base_url, str) or not base_url.strip():
        raise Invalid("Give the address of the embedding server.", field="baseUrl")
    try:
        embeddings_url(base_url)
    except Invalid as error:
        raise Invalid(str(error), field="baseUrl") from None
    return base_url.strip()


def load() -> EmbeddingConfig:
    """Return the settings as they are now.

    Raises:
        Unavailable: what is stored cannot be used.
    """
    try:
        return parse(load_section(SECTION))
    except Invalid:
        raise Unavailable("The embedding settings cannot be used; save them again.") from None


def endpoint(config: EmbeddingConfig) -> Endpoint:
    """Return where texts go under these settings: to a server of one's own with the environment's key,
    to a provider without one, as each request is authorized on its own.
    """
    if config.provider == LOCAL:
        return local_endpoint(cast(Name, settings.EMBEDDER))
    if config.is_connected:
        url = embeddings_url(config.base_url or PROVIDERS[config.provider].base_url)
        return Endpoint(config.provider, url, config.model, config.width)
    return Endpoint(
        provider=ENDPOINT,
        url=embeddings_url(config.base_url),
        model=config.model,
        width=config.width,
        key=Secret(settings.EMBEDDING_KEY) if settings.EMBEDDING_KEY else None,
    )


def active_space() -> VectorSpace:
    return space_of(endpoint(load()))
