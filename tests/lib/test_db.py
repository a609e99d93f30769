import pytest
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import BooleanField
from django.db.models.expressions import RawSQL

from elowen.lib.db import named_sql
from memories.models import Account, Memory
from tests.factories import MemoryFactory

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
