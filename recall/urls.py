from django.urls import path

from recall.api import Explain, Retrieve, Similar

urlpatterns = [
    path("retrieve", Retrieve.as_view(), name="retrieve"),
    path("explain", Explain.as_view(), name="explain"),
    path("similar", Similar.as_view(), name="similar"),
]
