from django.apps import AppConfig


class ElowenConfig(AppConfig):
    name = "elowen"

    def ready(self) -> None:
        from elowen import checks, schema  # noqa: F401 - each registers something
