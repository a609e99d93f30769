from typing import Any

from django.apps import AppConfig


class EmbeddingsConfig(AppConfig):
    name = "embeddings"

    def ready(self) -> None:
        from memories.signals import memory_committed

        memory_committed.connect(wake_queue, dispatch_uid="embeddings.wake_queue")


def wake_queue(**news: Any) -> None:
    from embeddings.pending import wake

    wake()
