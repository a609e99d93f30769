import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elowen.providers.endpoint import InvalidEndpoint
from elowen.providers.local import Embedder, Name, embedder, embedder_at, local_endpoint, self_test
from elowen.providers.minilm import MiniLM, even_parts
from elowen.providers.weights import Content, ModelBroken, checked

NAMES: list[Name] = list(get_args(Name.__value__))
NASTY = [
    "",
    " ",
    "\x00",
    "before\x00after",
    "half \ud800 of a pair",
    "\udfff",
    "a" * 100_000,
    "word " * 20_000,
    "漢字" * 5_000,
    "😀👨‍👩‍👧🏳️‍🌈" * 300,
    "\u200b\u200d\ufeff",
    "\ufdfa" * 200,
    "e" + "\u0301" * 5_000,
    "".join(map(chr, range(0x20))),
]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> Name:
    chosen: Name = request.param
    return chosen


@pytest.fixture
def model(name: Name) -> Embedder:
    return embedder(name)


def test_the_model_knows_what_is_alike(name: Name) -> None:
    self_test(name)


def test_a_model_is_one_instance_with_the_width_it_says(model: Embedder, name: Name) -> None:
    rows = model.embed(["Ada plays the cello.", "Rain."])

    assert embedder(name) is model
    assert rows.shape == (2, model.dims)
    assert rows.dtype == np.float32


def test_its_endpoint_leads_back_to_it(model: Embedder, name: Name) -> None:
    endpoint = local_endpoint(name)

    assert endpoint.provider == "local"
    assert endpoint.url == f"local:{model.id}"
    assert endpoint.width is None
    assert embedder_at(endpoint.url) is model


@pytest.mark.parametrize("url", ["", "local:", "local:minilm", "minilm-l6-int8-1", "http://localhost"])
def test_no_other_address_leads_to_a_model(url: str) -> None:
    with pytest.raises(InvalidEndpoint):
        embedder_at(url)


@pytest.mark.parametrize("text", NASTY, ids=lambda text: ascii(text[:8]))
def test_no_text_stops_a_model(model: Embedder, text: str) -> None:
    rows = model.embed([text, "Ada plays the cello."])

    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(st.text(alphabet=st.characters(codec=None), max_size=80), max_size=5))
def test_a_row_does_not_depend_on_its_company(texts: list[str]) -> None:
    for name in NAMES:
        model = embedder(name)
        together = model.embed(texts)
        alone = [model.embed([text])[0] for text in texts]

        assert together.shape == (len(texts), model.dims)
        assert np.allclose(together, np.reshape(alone, together.shape), atol=1e-4)


def test_rows_of_mixed_lengths_come_back_in_order(model: Embedder) -> None:
    texts = [
        "short",
        "some longer text about a garden " * 40,
        "mid length, nothing more",
        "word " * 900,
        "end",
    ]

    together = model.embed(texts)

    assert np.allclose(together, np.concatenate([model.embed([text]) for text in texts]), atol=1e-4)


def test_the_late_part_of_a_long_text_counts(model: Embedder) -> None:
    filler = "The committee met on Tuesday and discussed the budget of the coming year. " * 40
    question, plain, told = model.embed(
        ["Who is allergic to peanuts?", filler, filler + "My sister Eva is allergic to peanuts. " * 10]
    )

    assert question @ told > question @ plain + 0.05


def test_threads_share_a_model_and_get_their_own_rows(model: Embedder) -> None:
    texts = [f"Note {number}: {'words ' * (number % 7)}" for number in range(24)]
    expected = model.embed(texts)

    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda text: model.embed([text])[0], texts))

    assert np.allclose(rows, expected, atol=1e-4)


@given(st.lists(st.integers(), max_size=3_000), st.integers(1, 300))
def test_parts_are_even_and_hold_everything(ids: list[int], room: int) -> None:
    parts = even_parts(ids, room)

    lengths = [len(part) for part in parts]
    assert [number for part in parts for number in part] == ids
    assert max(lengths) <= room
    assert max(lengths) - min(lengths) <= 1
    assert len(parts) == max(1, -(-len(ids) // room))


@pytest.mark.parametrize("text", NASTY, ids=lambda text: ascii(text[:8]))
def test_no_window_is_longer_than_the_model_takes(text: str) -> None:
    model = embedder("english")
    assert isinstance(model, MiniLM)

    windows = model.windows(text)

    assert 1 <= len(windows) <= 8
    assert all(2 <= len(window) <= 256 for window in windows)
    assert all((window[0], window[-1]) == (101, 102) for window in windows)


def test_a_file_with_another_content_is_refused(tmp_path: Path) -> None:
    good = tmp_path / "good"
    good.write_bytes(b"weights")
    content = Content(7, "9a129038d87ff88c8d3aea815078af3b5b08e14504046d2d7d9c4d7a48ffd52a")

    for bad in (b"weightz", b"weights ", b""):
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises(ModelBroken):
            checked(tmp_path / "bad", content)
    with pytest.raises(ModelBroken):
        checked(tmp_path / "missing", content)
    with pytest.raises(ModelBroken):
        checked(tmp_path, content)


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_child_of_a_process_that_has_embedded_embeds_the_same() -> None:
    answer = run("""
import os, warnings
from elowen.providers.local import embedder
warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside the threads of numpy
for name in ("english", "multilingual"):
    before = embedder(name).embed(["Ada plays the cello."]).tobytes()
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, embedder(name).embed(["Ada plays the cello."]).tobytes())
        os._exit(0)
    os.wait()
    print(os.read(reader, 10_000) == before)
""")

    assert answer.split() == ["True", "True"]


def test_a_child_does_not_inherit_a_lock_that_is_held() -> None:
    answer = run("""
import os, warnings
from elowen.providers import local
warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside the threads of numpy
with local.loading:
    if os.fork() == 0:
        os.write(1, str(local.embedder("english").embed(["Ada"]).shape).encode())
        os._exit(0)
    os.wait()
""")

    assert answer == "(1, 384)"


def test_importing_loads_no_engine_no_model_and_no_framework() -> None:
    answer = run("""
import sys
import elowen.providers.embeddings
from elowen.providers import local
local.local_endpoint("english")
print([name for name in ("django", "onnxruntime", "requests", "httpx") if name in sys.modules], local.loaded)
""")

    assert answer == "[] {}"


def test_threads_that_ask_at_once_load_one_model() -> None:
    answer = run("""
import threading
from elowen.providers import local
found = []
threads = [threading.Thread(target=lambda: found.append(local.embedder("english"))) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(found), len(set(map(id, found))))
""")

    assert answer == "4 1"
