from django.urls import path

from memories import views

app_name = "memories"
urlpatterns = [
    path("memories", views.memory_list, name="list"),
    path("memories/<int:memory_id>", views.memory_detail, name="detail"),
]
