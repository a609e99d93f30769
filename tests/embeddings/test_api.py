import pytest
from django_q.models import OrmQ
from rest_framework.test import APIClient

from embeddings.config import load
from embeddings.models import EmbeddingSpace
from memories.models import Account
from tests.conftest import Api
from tests.factories import MemoryFactory
from tests.fakes.server import FakeServer, refuses

pytestmark = pytest.mark.django_db

PATH = "/api/memory/embedding"


@pytest.fixture
def admin(ada: Account, api: Api) -> APIClient:
    ada.is_staff = True
    ada.save()
    return api(ada)


def document(server: FakeServer, **changes: object) -> dict[str, object]:
    return {"providerId": "endpoint", "model": "m", "baseUrl": server.base, "dimensions": None} | changes


def test_everybody_reads_the_settings_and_the_own_backlog(ada: Account, ben: Account, api: Api) -> None:
    MemoryFactory.create(owner=ada)
    MemoryFactory.create_batch(2, owner=ben)

    answer = api(ben).get(PATH).json()

    space = EmbeddingSpace.objects.get()
    assert answer == {
        "providerId": "local",
        "model": space.model,
        "baseUrl": "",
        "dimensions": None,
        "spaceId": space.pk,
        "languages": "English",
        "calibrated": True,
        "maxRetries": 3,
        "pending": 2,
        "reindex": None,
    }


@pytest.mark.parametrize(("method", "path"), [("put", PATH), ("post", f"{PATH}/test")])
def test_only_administrators_change_or_try(
    ben: Account, api: Api, server: FakeServer, method: str, path: str
) -> None:
    answer = getattr(api(ben), method)(path, document(server), format="json")

    assert answer.status_code == 403
    assert (load().provider, server.requests) == ("local", [])


@pytest.mark.django_db(transaction=True)
def test_a_change_is_saved_and_everything_is_looked_through_after_the_commit(
    admin: APIClient, server: FakeServer
) -> None:
    answer = admin.put(PATH, document(server, dimensions=256), format="json")

    assert (answer.status_code, answer.json()["dimensions"]) == (200, 256)
    assert load().base_url == server.base
    assert [task.func() for task in OrmQ.objects.all()] == ["embeddings.tasks.reconcile"]
    assert server.requests == []


@pytest.mark.parametrize(
    "changes",
    [
        {"providerId": "elsewhere"},
        {"model": ""},
        {"baseUrl": "ftp://host"},
        {"baseUrl": ""},
        {"dimensions": 0},
        {"dimensions": 16_001},
        {"dimensions": "8"},
        {"providerId": "local"},
        {"key": "secret"},
    ],
)
def test_settings_that_make_no_sense_are_refused(
    admin: APIClient, server: FakeServer, changes: dict[str, object]
) -> None:
    answer = admin.put(PATH, document(server, **changes), format="json")

    assert answer.status_code == 400
    assert load().provider == "local"


def test_trying_the_bundled_model_works_out_of_the_box(admin: APIClient) -> None:
    answer = admin.post(f"{PATH}/test").json()

    assert (answer["ok"], answer["provider"], answer["dimensions"]) == (True, "local", 384)
    assert answer["latencyMs"] > 0


def test_settings_can_be_tried_before_they_are_saved(admin: APIClient, server: FakeServer) -> None:
    answer = admin.post(f"{PATH}/test", document(server), format="json").json()

    assert (answer["ok"], answer["model"], answer["dimensions"]) == (True, "m", 8)
    assert load().provider == "local"


def test_a_failed_try_is_an_answer(admin: APIClient, server: FakeServer) -> None:
    server.always(refuses(401))

    answer = admin.post(f"{PATH}/test", document(server), format="json")

    assert answer.status_code == 200
    assert answer.json() == {
        "ok": False,
        "error": "The provider does not accept the key. It answered 401.",
    }
