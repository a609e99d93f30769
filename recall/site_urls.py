from django.urls import path

from recall import site_views

app_name = "help"
urlpatterns = [
    path("", site_views.help_index, name="index"),
    path("/<path:slug>", site_views.help_article, name="article"),
]
