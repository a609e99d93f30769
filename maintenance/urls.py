from django.urls import path

from maintenance import views

app_name = "maintenance"
urlpatterns = [path("forecast", views.forecast_page, name="forecast")]
