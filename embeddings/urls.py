from django.urls import path

from embeddings.api import EmbeddingTestView, EmbeddingView, ReindexView

urlpatterns = [
    path("embedding", EmbeddingView.as_view(), name="embedding"),
    path("embedding/reindex", ReindexView.as_view(), name="embedding-reindex"),
    path("embedding/test", EmbeddingTestView.as_view(), name="embedding-test"),
]
