import json
import logging
import socket
import ssl
import subprocess
import threading
import time
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from elowen.lib.errors import Unavailable
from elowen.providers import http
from elowen.providers.http import (
    ContentRefused,
    InvalidAnswer,
    KeyRefused,
    ProviderFailed,
    RateLimited,
    TransportFailed,
    post_json,
    retry_after_s,
)
from tests.fakes.server import FakeServer, Received, Reply, gives, holds, refuses, resets

KEY = "sk-very-secret"
TEXT = "Ada keeps her spare key under the blue pot."


def post(server: FakeServer, **options: Any) -> Any:
    return post_json(server.url, {"model": "m", "input": [TEXT]}, **{"key": KEY, **options})


def test_the_request_carries_json_and_the_key(server: FakeServer) -> None:
    server.always(gives({"fine": True}))

    answer = post(server)

    (request,) = server.requests
    assert answer == {"fine": True}
    assert request.path == "/v1/embeddings"
    assert request.json == {"model": "m", "input": [TEXT]}
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["connection"] == "close"
    assert request.headers["host"] == f"127.0.0.1:{server.port}"


def test_without_a_key_no_authorization_is_sent(server: FakeServer) -> None:
    post(server, key=None)

    assert "authorization" not in server.requests[0].headers


def test_text_of_any_script_arrives_and_a_lone_surrogate_stops_nothing(server: FakeServer) -> None:
    server.always(gives({}))

    post_json(server.url, {"input": ["naïve 漢字 😀", "half \ud800 of it"]}, key=None)

    assert server.requests[0].texts == ["naïve 漢字 😀", "half ? of it"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ContentRefused),
        (401, KeyRefused),
        (402, RateLimited),
        (403, KeyRefused),
        (404, InvalidAnswer),
        (408, TransportFailed),
        (413, ContentRefused),
        (418, InvalidAnswer),
        (422, ContentRefused),
        (424, TransportFailed),
        (429, RateLimited),
        (500, TransportFailed),
        (502, TransportFailed),
        (503, TransportFailed),
        (529, TransportFailed),
    ],
)
def test_each_status_is_one_kind_of_failure_and_one_request(
    server: FakeServer, status: int, kind: type[ProviderFailed]
) -> None:
    server.always(refuses(status))

    with pytest.raises(ProviderFailed) as failure:
        post(server)

    assert type(failure.value) is kind
    assert isinstance(failure.value, Unavailable)
    assert failure.value.status == status
    assert str(status) in str(failure.value)
    assert len(server.requests) == 1


def test_an_overlong_text_that_llama_cpp_calls_a_server_error_is_a_refused_content(
    server: FakeServer,
) -> None:
    message = "input (596 tokens) is too large to process. increase the physical batch size"
    server.always(refuses(500, {"error": {"code": 500, "message": message, "type": "server_error"}}))

    with pytest.raises(ContentRefused):
        post(server)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": "insufficient_quota", "message": "…"}},
        {"error": {"code": None, "type": "insufficient_quota"}},
        {"object": "error", "type": "insufficient_quota", "message": "…"},
    ],
)
def test_a_known_reason_is_repeated(server: FakeServer, body: dict[str, Any]) -> None:
    server.always(refuses(429, body))

    with pytest.raises(RateLimited, match=r"\(insufficient_quota\)"):
        post(server)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b'"insufficient_quota"',
        b'{"error": "plain"}',
        b'{"error": {"code": 5, "type": []}}',
        b"[" * 40_000,
    ],
)
def test_a_refusal_in_any_shape_keeps_its_kind(server: FakeServer, body: bytes) -> None:
    server.always(lambda request: Reply(401, body))

    with pytest.raises(KeyRefused):
        post(server)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_never_followed(server: FakeServer, status: int) -> None:
    with FakeServer() as other:
        server.always(refuses(status, headers={"Location": other.url}))

        with pytest.raises(InvalidAnswer, match=str(status)):
            post(server)

        assert other.requests == []


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("0", 0.0), ("7", 7.0), ("1.5", 1.5), ("999999999999", 7 * 86_400.0)],
)
def test_retry_after_in_seconds_is_kept(server: FakeServer, header: str, seconds: float) -> None:
    server.always(refuses(429, headers={"Retry-After": header}))

    with pytest.raises(RateLimited) as failure:
        post(server)

    assert failure.value.retry_after_s == seconds


def test_retry_after_as_a_date_is_the_time_until_then(server: FakeServer) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=120), usegmt=True)
    server.always(refuses(503, headers={"Retry-After": date}))

    with pytest.raises(TransportFailed) as failure:
        post(server)

    assert failure.value.retry_after_s == pytest.approx(120, abs=10)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed Oct 21 07:28:00 2015", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 7 * 86_400.0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("inf", None),
        ("nan", None),
        ("1e9", None),
        ("9" * 400, None),
        ("٣", None),
        ("Wed, 99 Oct 2015 07:28:00 GMT", None),
    ],
)
def test_odd_forms_of_retry_after(header: str, seconds: float | None) -> None:
    assert retry_after_s(header) == seconds


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"data": [', b"\xff\xfe", b"[" * 100_000, b'{"n": ' + b"9" * 5_000 + b"}"]
)
def test_an_answer_that_is_not_json_is_invalid(server: FakeServer, body: bytes) -> None:
    server.always(gives(body))

    with pytest.raises(InvalidAnswer, match="not JSON"):
        post(server)


def test_an_endless_answer_is_given_up(server: FakeServer) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b" " * 1_000_000

    server.always(lambda request: Reply(body=endless()))

    with pytest.raises(InvalidAnswer, match="larger than"):
        post(server)


def test_of_an_endless_refusal_the_head_is_enough(server: FakeServer) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b" " * 1_000_000

    server.always(lambda request: Reply(status=429, body=endless(), headers={"Retry-After": "3"}))

    with pytest.raises(RateLimited) as failure:
        post(server)

    assert failure.value.retry_after_s == 3


def test_a_silent_server_times_out(server: FakeServer) -> None:
    release = threading.Event()
    server.always(holds(release))

    with pytest.raises(TransportFailed, match="in time"):
        post(server, timeout_s=0.2)

    release.set()


def test_an_answer_in_drops_times_out_as_a_whole(server: FakeServer) -> None:
    gone = threading.Event()

    def drops(request: Received) -> Reply:
        return Reply(body=(b" " for _ in iter(lambda: gone.wait(0.02), True)))

    server.always(drops)
    started = time.monotonic()

    with pytest.raises(TransportFailed, match="in time"):
        post(server, timeout_s=0.4)

    gone.set()
    assert time.monotonic() - started < 5


def test_a_reset_is_an_open_outcome(server: FakeServer) -> None:
    server.always(resets())

    with pytest.raises(TransportFailed, match="broke off"):
        post(server)

    assert len(server.requests) == 1


def test_an_answer_cut_short_is_an_open_outcome(server: FakeServer) -> None:
    server.always(lambda request: Reply(body=iter([b"{}"]), headers={"Content-Length": "100"}))

    with pytest.raises(TransportFailed, match="broke off"):
        post(server)


def test_a_server_that_does_not_speak_http_is_an_open_outcome() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"220 mail.example ESMTP " + TEXT.encode() + b"\r\n\r\n")
                connection.recv(100_000)

        thread = threading.Thread(target=greet)
        thread.start()

        with pytest.raises(TransportFailed, match="HTTP") as failure:
            post_json(f"http://127.0.0.1:{listener.getsockname()[1]}/", {"input": [TEXT]}, key=KEY)

        thread.join()
    assert TEXT not in printed(failure.value)


def test_nobody_listening_is_a_failed_transport() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    with pytest.raises(TransportFailed, match="cannot be reached"):
        post_json(f"http://127.0.0.1:{port}/", {}, key=None)


@pytest.mark.parametrize("host", ["name.invalid", f"{'a' * 64}.example", "999.1.1.1.1"])
def test_a_name_without_an_address_is_a_failed_transport(host: str) -> None:
    with pytest.raises(TransportFailed, match="cannot be reached"):
        post_json(f"http://{host}/", {}, key=None, timeout_s=5)


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", "ключ", "nul\x00", "sk-1\r\nX: y"])
def test_a_key_that_no_header_can_carry_is_refused_unsent(server: FakeServer, key: str) -> None:
    with pytest.raises(KeyRefused) as failure:
        post(server, key=key)

    assert server.requests == []
    assert not key or key not in printed(failure.value)


def printed(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error)


def quoting(status: int) -> Any:
    """Answer with everything that was received, as careless servers do."""

    def script(request: Received) -> Reply:
        message = f"{request.headers.get('authorization')} sent {request.body.decode()}"
        body = json.dumps({"error": {"code": KEY, "type": TEXT, "message": message}}).encode()
        return Reply(status, body, headers={"X-Key": KEY, "Retry-After": KEY})

    return script


@pytest.mark.parametrize("status", [302, 400, 401, 404, 422, 429, 500, 503])
def test_neither_key_nor_text_reaches_a_message_or_a_log(
    server: FakeServer, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    server.always(quoting(status))

    with caplog.at_level(logging.INFO), pytest.raises(ProviderFailed) as failure:
        post(server)

    shown = printed(failure.value) + caplog.text
    assert KEY not in shown
    assert TEXT not in shown


@pytest.mark.parametrize("answer", [f"{KEY} {TEXT}".encode(), f'["{KEY}{TEXT}'.encode()])
def test_an_answer_that_quotes_the_request_is_not_shown(server: FakeServer, answer: bytes) -> None:
    server.always(gives(answer))

    with pytest.raises(InvalidAnswer) as failure:
        post(server)

    assert KEY not in printed(failure.value)
    assert TEXT not in printed(failure.value)


def test_even_a_debug_log_has_no_request_in_it(server: FakeServer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        post(server)

    assert "httpcore" in caplog.text
    assert KEY not in caplog.text
    assert TEXT not in caplog.text


@pytest.mark.skipif(which("openssl") is None, reason="makes its certificate with openssl")
class TestTLS:
    @pytest.fixture
    def certificate(self, tmp_path: Path) -> Path:
        path = tmp_path / "both.pem"
        command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
        names = [
            "-addext",
            "subjectAltName=DNS:localhost",
            "-keyout",
            str(path),
            "-out",
            str(tmp_path / "c.pem"),
        ]
        subprocess.run([*command.split(), *names], check=True, capture_output=True)
        path.write_text(path.read_text() + (tmp_path / "c.pem").read_text())
        return path

    @pytest.fixture
    def secure(self, certificate: Path) -> Iterator[FakeServer]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        with FakeServer(tls=context) as server:
            yield server

    @pytest.fixture
    def trusted(self, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        http.tls.cache_clear()
        yield
        http.tls.cache_clear()

    def test_an_unknown_authority_gets_no_request(self, secure: FakeServer) -> None:
        with pytest.raises(TransportFailed, match="certificate"):
            post(secure)

        assert secure.requests == []

    @pytest.mark.usefixtures("trusted")
    def test_the_certificate_has_to_carry_the_name_that_was_asked_for(self, secure: FakeServer) -> None:
        post_json(f"https://localhost:{secure.port}/v1/embeddings", {"model": "m", "input": []}, key=None)
        with pytest.raises(TransportFailed, match="certificate"):
            post(secure)

        assert len(secure.requests) == 1
