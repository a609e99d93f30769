"""A change of the model while clients recall: errors, the share answered by words, and how long it takes.

    python -m bench.switch --memories 10000 --clients 8

Real processes: the web server, the worker, and two embedding servers with the two bundled models. The import
under the first model gives texts per second (M4); then the settings change to the second one, and the clients
go on asking until everything has its vector there. Each client asks the next question when it has its answer.
"""

import argparse
import json
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from statistics import median, quantiles
from threading import Event
from typing import TYPE_CHECKING, Any

from bench.database import own_database
from bench.processes import embedding_server, web_server, worker

if TYPE_CHECKING:
    from memories.models import Account

SUBJECTS = ("Ada", "Ben", "Cleo", "the printer", "our server", "my sister", "the garden", "the old office")
VERBS = ("likes", "needs", "has lost", "talks about", "pays for", "is afraid of", "has repaired", "waits for")
KINDS = ("blue", "heavy", "borrowed", "Swedish", "broken", "tiny", "expensive", "wooden")
THINGS = ("teapot", "train", "peanuts", "cello", "contract", "puppy", "vaccine", "spreadsheet")
PLACES = (
    "in Bath",
    "at work",
    "under the bridge",
    "at the wedding",
    "by the sea",
    "in May",
    "on TV",
    "at night",
)
PATIENCE_S = 3_600


@dataclass(frozen=True)
class Answer:
    status: int
    path: str  # semantic, keyword, or what else the header says
    ms: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--warm", type=float, default=10, help="seconds to ask before the change")
    args = parser.parse_args()
    with own_database(), embedding_server("english") as first, embedding_server("multilingual") as second:
        from memories.actions.accounts import create_account
        from memories.actions.keys import issue_key

        account = create_account(username="bench", is_staff=True)
        secret = issue_key(account=account, name="bench", scopes=("read", "write")).secret
        fill(account, args.memories)
        with worker(), web_server() as address:
            imported_s = change_and_wait(account, first)
            before = asked_for(address, secret, args.clients, lambda: time.sleep(args.warm))
            during = asked_for(address, secret, args.clients, lambda: change_and_wait(account, second))
            result = {
                "memories": args.memories,
                "clients": args.clients,
                "import_s": round(imported_s, 1),
                "texts_per_s": round(args.memories / imported_s, 1),
                "before": before,
                "during": during,
            }
    print(json.dumps(result))


def fill(account: "Account", memories: int) -> None:
    from memories.models import Category, Memory

    category = Category.objects.create(owner=account, name="bench")
    bodies = (f"{SUBJECTS[n // 4096 % 8]} {phrase(n)} since day {n}." for n in range(memories))
    Memory.objects.bulk_create(
        [Memory(owner=account, category=category, body=body) for body in bodies], batch_size=1_000
    )


def change_and_wait(account: "Account", base: str) -> float:
    """Change the settings as an administrator does, and return the seconds until nothing waits."""
    from django.db import connection

    from embeddings.actions.storing import change_config
    from embeddings.config import EmbeddingConfig, active_space
    from embeddings.models import EmbeddingSpace, MemoryEmbedding
    from memories.models import Memory

    began = time.perf_counter()
    change_config(config=EmbeddingConfig("endpoint", "m", base), by=account)
    space = EmbeddingSpace.objects.row_of(active_space())
    wanted = Memory.objects.count()
    while MemoryEmbedding.objects.filter(space=space).count() < wanted:
        if time.perf_counter() - began > PATIENCE_S:
            raise SystemExit("The index was not complete in time.")
        time.sleep(0.2)
    connection.close()
    return time.perf_counter() - began


def asked_for(address: str, secret: str, clients: int, work: Any) -> dict[str, Any]:
    """Have the clients ask while `work` goes on, and sum up what they were answered."""
    over, numbers = Event(), count()

    def client() -> list[Answer]:
        answers = []
        while not over.is_set():
            answers.append(ask(address, secret, next(numbers)))
        return answers

    with ThreadPoolExecutor(clients) as pool:
        running = [pool.submit(client) for _ in range(clients)]
        began = time.perf_counter()
        try:
            work()
        finally:
            over.set()
        seconds = time.perf_counter() - began
        answers = [answer for one in running for answer in one.result()]
    return summed_up(answers) | {"seconds": round(seconds, 1)}


def phrase(number: int) -> str:
    """What a memory says and a client asks for: recall without vectors looks for the query as it stands."""
    return (
        f"{VERBS[number % 8]} {KINDS[number // 8 % 8]} {THINGS[number // 64 % 8]} {PLACES[number // 512 % 8]}"
    )


def ask(address: str, secret: str, number: int) -> Answer:
    request = urllib.request.Request(  # noqa: S310 - our own server
        f"{address}/api/memory/retrieve",
        json.dumps({"query": phrase(number)}).encode(),
        {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"},
    )
    began = time.perf_counter()
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310
            reply.read()
            status, path = reply.status, reply.headers["X-Elowen-Recall"]
    except OSError as error:
        status, path = getattr(error, "code", 0), "error"
    return Answer(status, path, (time.perf_counter() - began) * 1000)


def summed_up(answers: list[Answer]) -> dict[str, Any]:
    taken = [answer.ms for answer in answers]
    paths = Counter(answer.path for answer in answers)
    return {
        "requests": len(answers),
        "errors": sum(answer.status != 200 for answer in answers),
        "share": {path: round(number / len(answers), 3) for path, number in sorted(paths.items())},
        "ms": {"p50": round(median(taken), 1), "p95": round(quantiles(taken, n=20)[18], 1)},
    }


if __name__ == "__main__":
    main()
