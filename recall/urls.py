from django.urls import path

from recall.api import Retrieve, Similar

urlpatterns = [
    path("retrieve", Retrieve.as_view(), name="retrieve"),
    path("similar", Similar.as_view(), name="similar"),
]
