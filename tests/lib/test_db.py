from collections.abc import Callable

import pytest
from django.core.exceptions import EmptyResultSet
from django.db import DataError, OperationalError, connection
from django.db.models import BooleanField, F
from django.db.models.expressions import RawSQL

from elowen.lib import db
from elowen.lib.db import named_sql, reconnecting, serializable, sqlstate_of
from memories.models import Account, Memory
from tests.factories import MemoryFactory
from tests.threads import PATIENCE_S, in_thread

pytestmark = pytest.mark.django_db


def test_a_queryset_stands_within_a_statement_with_percent_signs_of_its_own(ada: Account) -> None:
    half = MemoryFactory.create(owner=ada, body="50% done")
    MemoryFactory.create(owner=ada, body="all done")
    rows = Memory.objects.filter(owner=ada, kind="fact")
    rows = rows.filter(RawSQL("body LIKE '%%0\\%% d%%'", [], output_field=BooleanField()))

    inner, params = named_sql(rows.values_list("pk"))
    with connection.cursor() as cursor:
        cursor.execute(f"select id from ({inner}) one (id) where id > %(least)s", params | {"least": 0})
        found = cursor.fetchall()

    assert found == [(half.pk,)]


def test_contradicting_filters_are_told() -> None:
    with pytest.raises(EmptyResultSet):
        named_sql(Memory.objects.none().values_list("pk"))


def disturbed(memory_id: int, times: int) -> Callable[[], int]:
    """Return work that another transaction gets in the way of so many times, and how often it began."""
    begun = 0

    def disturb() -> None:
        Memory.objects.filter(pk=memory_id).update(use_count=F("use_count") + 100)

    def work() -> int:
        nonlocal begun
        begun += 1
        memory = Memory.objects.get(pk=memory_id)
        if begun <= times:
            in_thread(disturb).join(PATIENCE_S)
        memory.use_count += 1
        memory.save(update_fields=["use_count"])
        return begun

    return work


@pytest.mark.django_db(transaction=True)
def test_work_that_met_another_transaction_begins_again_from_what_is_stored_now(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada)

    assert serializable(disturbed(memory.pk, times=3)) == 4

    memory.refresh_from_db()
    assert memory.use_count == 301


@pytest.mark.django_db(transaction=True)
def test_work_is_given_up_after_its_attempts(ada: Account) -> None:
    memory = MemoryFactory.create(owner=ada)

    with pytest.raises(OperationalError) as raised:
        serializable(disturbed(memory.pk, times=100), attempts=3)

    assert sqlstate_of(raised.value) == "40001"
    memory.refresh_from_db()
    assert memory.use_count == 300


@pytest.mark.django_db(transaction=True)
def test_other_errors_are_not_tried_again() -> None:
    begun = []

    def work() -> None:
        begun.append(1)
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")

    with pytest.raises(DataError):
        serializable(work)
    assert len(begun) == 1


def break_off() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def dropped(times: int) -> Callable[[], int]:
    begun = 0

    def work() -> int:
        nonlocal begun
        begun += 1
        if begun <= times:
            break_off()
        return Memory.objects.count() + begun

    return work


@pytest.mark.django_db(transaction=True)
def test_work_goes_on_when_the_database_drops_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db, "RECONNECT_PAUSE_S", 0)

    assert reconnecting(dropped(times=2)) == 3
    with pytest.raises(OperationalError):
        reconnecting(dropped(times=9), attempts=2)
    connection.close()
