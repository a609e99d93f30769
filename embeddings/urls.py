from django.urls import path

from embeddings.api import EmbeddingTestView, EmbeddingView

urlpatterns = [
    path("embedding", EmbeddingView.as_view(), name="embedding"),
    path("embedding/test", EmbeddingTestView.as_view(), name="embedding-test"),
]
