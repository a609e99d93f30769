"""Work in other threads, each with a database connection of its own that it closes."""

from collections.abc import Callable, Sequence
from threading import Barrier, Thread

from django.db import connection

PATIENCE_S = 30.0


def in_thread(work: Callable[[], object]) -> Thread:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = Thread(target=run)
    thread.start()
    return thread


def at_once[T](works: Sequence[Callable[[], T]]) -> list[T]:
    """Let all begin at the same moment and return what each gave, in order."""
    start, given = Barrier(len(works)), dict[int, T]()

    def beginning_together(place: int) -> Callable[[], None]:
        def work() -> None:
            start.wait(PATIENCE_S)
            given[place] = works[place]()

        return work

    threads = [in_thread(beginning_together(place)) for place in range(len(works))]
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(given) == len(works), "One of the threads failed or hung."
    return [given[place] for place in range(len(works))]
