from django.urls import path

from embeddings import connection_views, views

app_name = "embeddings-pages"
urlpatterns = [
    path("", views.embedding_settings, name="settings"),
    path("/index", views.index_progress, name="index"),
    path("/reindex", views.reindex, name="reindex"),
    path("/connections/new", connection_views.connection_new, name="connection-new"),
    path("/connections/<int:connection_id>", connection_views.connection_edit, name="connection"),
    path("/connections/<int:connection_id>/act", connection_views.connection_act, name="connection-act"),
    path("/openrouter", connection_views.openrouter_begin, name="openrouter"),
    path("/openrouter/<str:attempt>", connection_views.openrouter_back, name="openrouter-back"),
]
