from typing import Any

from django.core.management.base import CommandParser

from elowen.launch import data_folder, give_secret_key
from elowen.lib.env import env_int, env_str
from elowen.management.standalone import StandAloneCommand
from elowen.supervisor import Supervisor


class Command(StandAloneCommand):
    help = "Start the database, the web and the queue, keep them running, and end them with Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        host = env_str("ELOWEN_HOST") or "127.0.0.1"
        port = env_int("ELOWEN_PORT", 8000, low=1, high=65535)
        parser.add_argument("--host", default=host, help="default: %(default)s")
        parser.add_argument("--port", type=int, default=port, help="default: %(default)s")
        parser.add_argument(
            "--only", choices=["web", "queue"], default="", help="one of the two, on a database of your own"
        )

    def handle(self, *args: Any, host: str, port: int, only: str, **options: Any) -> None:
        give_secret_key(data_folder())
        Supervisor(data_folder(), host, port, only).run()
