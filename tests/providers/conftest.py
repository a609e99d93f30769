from collections.abc import Iterator

import pytest

from tests.fakes.server import FakeServer


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        yield fake
