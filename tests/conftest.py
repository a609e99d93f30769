from collections.abc import Callable

import pytest
from django.conf import LazySettings
from pytest_django import DjangoDbBlocker
from rest_framework.test import APIClient

from embeddings import corpora
from memories.actions.keys import issue_key
from memories.models import Account
from tests.database import let_tests_empty_the_trail
from tests.factories import AccountFactory

type Api = Callable[..., APIClient]


@pytest.fixture(autouse=True)
def _cheap_passwords(settings: LazySettings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def _no_corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of the queue counts requests for memories; one of the help says so."""
    monkeypatch.setattr(corpora, "CORPORA", {})


@pytest.fixture(autouse=True)
def _nested_snapshots(settings: LazySettings) -> None:
    settings.SNAPSHOTS_MAY_NEST = True  # ordinary tests live inside a transaction


@pytest.fixture
def ada(db: None) -> Account:
    """The owner of what a test looks at."""
    account: Account = AccountFactory.create(username="ada")
    return account


@pytest.fixture
def ben(db: None) -> Account:
    """Somebody who shares a project with Ada."""
    account: Account = AccountFactory.create(username="ben")
    return account


@pytest.fixture
def cleo(db: None) -> Account:
    """A stranger."""
    account: Account = AccountFactory.create(username="cleo")
    return account


@pytest.fixture
def api() -> Api:
    """Return a client that speaks with a key of the given account."""

    def client(account: Account, scopes: tuple[str, ...] = ("read", "write")) -> APIClient:
        issued = issue_key(account=account, name="test", scopes=scopes)
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {issued.secret}")
        return client

    return client


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    with django_db_blocker.unblock():
        let_tests_empty_the_trail()
