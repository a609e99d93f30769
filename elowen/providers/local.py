"""The bundled models, one instance of each per process, loaded with the first text."""

import os
from collections.abc import Sequence
from threading import Lock
from typing import Literal, Protocol

import numpy as np

from elowen.providers.endpoint import LOCAL, Endpoint, InvalidEndpoint
from elowen.providers.minilm import MiniLM
from elowen.providers.multilingual import Multilingual
from elowen.providers.vectors import Vector
from elowen.providers.weights import ModelBroken

type Name = Literal["english", "multilingual"]


class Embedder(Protocol):
    """What a model in this process can do. Threads may share one."""

    @property
    def id(self) -> str:
        """Stands for the exact vectors: another model or another way of computing has another id."""

    @property
    def dims(self) -> int: ...

    @property
    def max_tokens(self) -> int | None:
        """The length of one window; None is no limit."""

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return one L2-normalised float32 row per text, in input order."""


MODELS: dict[Name, type[MiniLM] | type[Multilingual]] = {"english": MiniLM, "multilingual": Multilingual}

loading = Lock()
loaded: dict[Name, Embedder] = {}


def embedder(name: Name) -> Embedder:
    """Return this process's instance of the model, loaded at the first call.

    Raises:
        ModelBroken: its files are missing or are not the ones that were measured.
    """
    with loading:
        if name not in loaded:
            loaded[name] = MODELS[name]()
        return loaded[name]


def forget_models() -> None:
    global loading
    loading = Lock()
    loaded.clear()


# A child loads its own: another thread of its parent may have held the lock, or been inside a model.
os.register_at_fork(after_in_child=forget_models)


def local_endpoint(name: Name) -> Endpoint:
    """Return the place that a bundled model is, without loading it."""
    model = MODELS[name]
    return Endpoint(provider=LOCAL, url=f"{LOCAL}:{model.id}", model=model.id)


def embedder_at(url: str) -> Embedder:
    for name, model in MODELS.items():
        if url == f"{LOCAL}:{model.id}":
            return embedder(name)
    raise InvalidEndpoint("There is no bundled model of this name.")


# One thing said twice, and something that has nothing to do with it.
TRIPLES = [
    ("My sister is allergic to peanuts.", "My sister cannot eat nuts.", "The train leaves at seven."),
    ("We moved to a new flat in May.", "Our apartment changed in May.", "Python has no switch statement."),
    ("She works as a nurse at night.", "She is a night-shift nurse.", "He paints the garden fence blue."),
]


def self_test(name: Name) -> None:
    """Embed a few sentences whose likeness is known.

    Raises:
        ModelBroken: the vectors are not what this model gives.
    """
    model = embedder(name)
    together = model.embed([text for triple in TRIPLES for text in triple])
    alone = np.concatenate([model.embed([text]) for triple in TRIPLES for text in triple])
    said, again, other = together[0::3], together[1::3], together[2::3]
    like, unlike = np.sum(said * again, axis=1), np.sum(said * other, axis=1)
    if like.min() < 0.5 or unlike.max() > 0.2 or np.abs(together - alone).max() > 1e-4:
        raise ModelBroken("The bundled embedding model computes wrong vectors on this machine.")
