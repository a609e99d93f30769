"""E16: the way of everything into another space, behind what is new, with progress and a stop."""

from functools import partial

import pytest
from django.db import transaction
from django_q.models import OrmQ
from rest_framework.test import APIClient

from elowen.lib.errors import Conflict, Refused
from embeddings import tasks
from embeddings.actions import reindexing
from embeddings.actions.reindexing import begin_reindex, reconcile, stop_reindex
from embeddings.models import MemoryEmbedding, PendingMemory, Reindex
from embeddings.pending import SUSPECT_ATTEMPTS
from embeddings.queue import drain
from memories.models import Account, Memory
from tests.conftest import Api
from tests.embeddings.conftest import Use
from tests.embeddings.queues import indexed, make_due, remember, waiting
from tests.fakes.server import FakeServer, refuses_texts
from tests.threads import at_once, in_thread

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "/api/memory/embedding"


@pytest.fixture
def admin(ada: Account) -> Account:
    ada.is_staff = True
    ada.save()
    return ada


def states() -> list[str]:
    return list(Reindex.objects.order_by("pk").values_list("state", flat=True))


def run_tasks() -> None:
    """Do what was asked for, as the worker would."""
    for row in OrmQ.objects.all():
        task = row.task
        row.delete()
        getattr(tasks, task["func"].rpartition(".")[2])(**task["kwargs"])


def test_what_is_new_goes_before_what_a_change_has_queued(ada: Account, server: FakeServer, use: Use) -> None:
    use(server, model="a")
    remember(ada, "old 1", "old 2")
    drain()
    use(server, model="b")
    reconcile(anew=True)
    remember(ada, "new")
    Memory.objects.bulk_create(Memory(owner=ada, body=f"new {number}") for number in range(49))

    drain()

    texts = [request.texts for request in server.requests[1:]]
    assert [len(one) for one in texts] == [50, 2]
    assert all(text.startswith("new") for text in texts[0])


def test_an_edit_of_what_waits_is_new(ada: Account, server: FakeServer, use: Use) -> None:
    use(server, model="a")
    (memory,) = remember(ada, "old")
    drain()
    use(server, model="b")
    reconcile(anew=True)

    Memory.objects.filter(pk=memory.pk).update(body="new")

    assert PendingMemory.objects.get().backfill is False


def test_progress_runs_from_the_change_to_the_end(
    admin: Account, server: FakeServer, use: Use, api: Api
) -> None:
    use(server, model="a")
    remember(admin, *"abc")
    drain()
    assert api(admin).get(PATH).json()["reindex"] is None

    use(server, model="b")
    reconcile(anew=True)
    before = api(admin).get(PATH).json()["reindex"]
    remember(admin, "new")
    drain()
    after = api(admin).get(PATH).json()["reindex"]

    assert (before["state"], before["total"], before["done"], before["endedAt"]) == ("running", 3, 0, None)
    assert (after["state"], after["total"], after["done"], after["failed"]) == ("done", 3, 3, 0)
    assert after["endedAt"] is not None


def test_it_ends_though_a_text_is_refused_for_good(
    admin: Account, server: FakeServer, use: Use, api: Api
) -> None:
    use(server, model="a")
    bad, *_ = remember(admin, "bad", "good", "fine")
    drain()
    use(server, model="b")
    server.always(refuses_texts(lambda text: text == "bad"))
    reconcile(anew=True)

    for _ in range(SUSPECT_ATTEMPTS):
        assert states() == ["running"]
        drain()
        make_due()

    assert states() == ["done"]
    assert waiting() == {bad.pk: SUSPECT_ATTEMPTS}


def test_a_stop_leaves_the_rest_alone_and_serves_what_is_new(
    admin: Account, server: FakeServer, use: Use, api: Api
) -> None:
    use(server, model="a")
    old = remember(admin, "one", "two")
    drain()
    use(server, model="b")
    reconcile(anew=True)

    stopped = api(admin).delete(f"{PATH}/reindex")
    (new,) = remember(admin, "new")
    make_due()
    drain()
    reconcile()

    assert (stopped.status_code, stopped.json()["reindex"]["state"]) == (200, "stopped")
    assert [request.texts for request in server.requests[1:]] == [["new"]]
    assert set(waiting()) == {memory.pk for memory in old}
    assert states() == ["stopped"]
    OrmQ.objects.all().delete()

    resumed = api(admin).post(f"{PATH}/reindex")
    run_tasks()
    run_tasks()

    assert resumed.status_code == 202
    assert (states(), waiting()) == (["done"], {})
    assert MemoryEmbedding.objects.filter(space__model="b").count() == 3
    assert new.pk in indexed()


def test_a_second_change_supersedes_the_first(ada: Account, server: FakeServer, use: Use) -> None:
    use(server, model="a")
    remember(ada, "one", "two")
    drain()
    use(server, model="b")
    reconcile(anew=True)
    use(server, model="a")

    reconcile(anew=True)
    drain()

    assert states() == ["superseded", "done"]
    assert (len(server.requests), waiting()) == (1, {})


def test_a_change_meanwhile_ends_the_looking(
    ada: Account, server: FakeServer, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(server, model="a")
    remember(ada, "one", "two")
    drain()
    use(server, model="b")
    enqueue = reindexing.enqueue

    def changed_meanwhile(*arguments: object) -> int:
        use(server, model="a")
        return enqueue(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(reindexing, "enqueue", changed_meanwhile)

    assert reconcile(anew=True) == 0
    assert (states(), waiting()) == ([], {})


def test_every_stretch_of_ids_is_looked_at(
    ada: Account, server: FakeServer, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reindexing, "STRETCH", 2)
    use(server, model="a")
    memories = remember(ada, *"abcdefg")
    drain()
    use(server, model="b")

    assert reconcile(anew=True) == 7
    assert set(waiting()) == {memory.pk for memory in memories}
    assert Reindex.objects.get().total == 7


def test_two_at_once_keep_one_record(ada: Account, server: FakeServer, use: Use) -> None:
    use(server, model="a")
    remember(ada, *"abcdefg")
    drain()
    use(server, model="b")

    missing = at_once([partial(reconcile, anew=True) for _ in range(4)])

    assert sum(missing) == 7
    assert (states(), len(waiting())) == (["running"], 7)


def test_asked_for_by_hand_it_is_on_record_though_nothing_is_missing(
    admin: Account, server: FakeServer, use: Use
) -> None:
    use(server)
    remember(admin, "one")
    drain()
    OrmQ.objects.all().delete()

    begin_reindex(by=admin)
    run_tasks()
    drain()

    row = Reindex.objects.get()
    assert (row.state, row.total, row.asked_by) == ("done", 0, f"user:{admin.pk}")
    assert len(server.requests) == 1


def test_nothing_to_stop_is_a_conflict(admin: Account, ben: Account, api: Api) -> None:
    with pytest.raises(Conflict):
        stop_reindex(by=admin)
    assert api(admin).delete(f"{PATH}/reindex").status_code == 409
    for call in (begin_reindex, stop_reindex):
        with pytest.raises(Refused):
            call(by=ben)
    strangers: APIClient = api(ben)
    assert strangers.post(f"{PATH}/reindex").status_code == 403
    assert strangers.delete(f"{PATH}/reindex").status_code == 403
    assert strangers.get(PATH).json()["reindex"] is None
    assert not OrmQ.objects.exists()


def test_a_memory_that_is_being_written_is_left_to_its_writer(
    ada: Account, server: FakeServer, use: Use
) -> None:
    """Waiting for it could deadlock with one that writes several memories in its own order."""
    use(server)
    memory, other = remember(ada, "one", "two")
    drain()
    use(server, model="b")
    found = list[int]()

    with transaction.atomic():
        Memory.objects.filter(pk=memory.pk).update(body="new")
        in_thread(lambda: found.append(reconcile())).join(10)

    assert found == [1]
    assert set(waiting()) == {memory.pk, other.pk}
