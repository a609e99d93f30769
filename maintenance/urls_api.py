from django.urls import path

from maintenance.api import MemoryForecast

urlpatterns = [path("forecast", MemoryForecast.as_view(), name="forecast")]
