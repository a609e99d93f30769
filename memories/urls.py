from django.urls import path

from memories import retention_views, views

app_name = "memories"
urlpatterns = [
    path("memories", views.memory_list, name="list"),
    path("memories/<int:memory_id>", views.memory_detail, name="detail"),
    path("settings/retention", retention_views.retention, name="retention"),
    path("settings/retention/curves", retention_views.retention_curves, name="retention-curves"),
    path("memories/<int:memory_id>/keep", views.memory_keep, name="keep"),
    path("memories/<int:memory_id>/restore", views.memory_restore, name="restore"),
]
