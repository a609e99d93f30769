from functools import partial

from django.apps import AppConfig


class RecallConfig(AppConfig):
    name = "recall"

    def ready(self) -> None:
        from embeddings.corpora import register
        from recall.site import KINDS, documents

        for kind in KINDS:
            register(kind, partial(documents, kind))
