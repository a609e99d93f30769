from django.apps import AppConfig


class ElowenConfig(AppConfig):
    name = "elowen"

    def ready(self) -> None:
        from elowen import checks  # noqa: F401 - registers them
