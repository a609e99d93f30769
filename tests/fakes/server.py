"""A scripted embedding server on a real socket, for everything that a provider can do.

    with FakeServer() as server:
        server.then(refuses(429, headers={"Retry-After": "7"}), resets())
        ...  # the first request is refused, the second one reset, all others get vectors
        assert server.requests[0].texts == ["one"]

A script takes the received request and returns a reply, so a test may write one of its own.
"""

import json
import math
import socket
import ssl
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Condition, Event, Thread
from types import TracebackType
from typing import Any, Self

WIDTH = 8
PATIENCE_S = 10.0


@dataclass(frozen=True)
class Received:
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def texts(self) -> list[str]:
        return list(self.json["input"])


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: bytes | Iterable[bytes] = b""  # parts are sent one by one, as they come
    headers: Mapping[str, str] = field(default_factory=dict)
    reset: bool = False  # instead of an answer


type Script = Callable[[Received], Reply]
type Rows = list[dict[str, Any]]


def vector_of(text: str, *, width: int = WIDTH, model: str = "") -> list[float]:
    """Return a vector of length 1 that shares with another text's what the two share in words."""
    words = text.lower().split() or [text]
    sources = [Random(sha256(f"{model}\n{word}".encode()).digest()) for word in words]
    sums = [sum(source.gauss(0, 1) for source in sources) for _ in range(width)]
    length = math.hypot(*sums)
    return [number / length for number in sums]


def gives_vectors(
    *, width: int = WIDTH, change: Callable[[Rows], Any] = lambda rows: rows, tokens: int | None = 7
) -> Script:
    """Answer as OpenAI does; `change` gets the rows and returns what is sent as `data` instead.

    A request that asks for `dimensions` gets that width.
    """

    def script(request: Received) -> Reply:
        wide = request.json.get("dimensions", width)
        vectors = [vector_of(text, width=wide, model=request.json["model"]) for text in request.texts]
        rows = [
            {"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(vectors)
        ]
        usage = {} if tokens is None else {"usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
        return json_reply({"object": "list", "data": change(rows)} | usage)

    return script


def gives(body: Any) -> Script:
    """Answer 200 with these bytes, or with this value as JSON."""
    reply = Reply(body=body) if isinstance(body, bytes) else json_reply(body)
    return lambda request: reply


def refuses(status: int, body: Any = None, *, headers: Mapping[str, str] | None = None) -> Script:
    reply = json_reply({"error": {"message": "No."}} if body is None else body, status=status)
    return lambda request: Reply(reply.status, reply.body, headers={**reply.headers, **(headers or {})})


def refuses_texts(bad: Callable[[str], bool], status: int = 400) -> Script:
    """Refuse every request that holds a bad text, quoting the request; give vectors otherwise."""

    def script(request: Received) -> Reply:
        if any(map(bad, request.texts)):
            return json_reply({"error": {"message": f"Cannot take {request.texts}"}}, status=status)
        return gives_vectors()(request)

    return script


def resets() -> Script:
    return lambda request: Reply(reset=True)


def holds(release: Event, then: Script | None = None) -> Script:
    """Answer only after the event is set, which a test does when it has looked around."""

    def script(request: Received) -> Reply:
        release.wait(PATIENCE_S)
        return (then or gives_vectors())(request)

    return script


def json_reply(value: Any, *, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


class FakeServer:
    def __init__(self, usual: Script | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        self.usual = usual or gives_vectors()
        self.scripts: list[Script] = []
        self.requests: list[Received] = []
        self.news = Condition()
        self.http = Listener(("127.0.0.1", 0), self)
        self.scheme = "https" if tls else "http"
        if tls:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)

    @property
    def port(self) -> int:
        return int(self.http.server_address[1])

    @property
    def base(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The address of requests."""
        return f"{self.base}/v1/embeddings"

    def then(self, *scripts: Script) -> None:
        """Play these for the next requests, one each, and the usual script after them."""
        with self.news:
            self.scripts.extend(scripts)

    def always(self, script: Script) -> None:
        self.usual = script

    def wait_for_requests(self, count: int) -> list[Received]:
        """Return the requests as soon as so many have arrived."""
        with self.news:
            arrived = self.news.wait_for(lambda: len(self.requests) >= count, PATIENCE_S)
            assert arrived, f"{len(self.requests)} of {count} requests arrived"
            return list(self.requests)

    def reply_to(self, request: Received) -> Reply:
        with self.news:
            self.requests.append(request)
            self.news.notify_all()
            script = self.scripts.pop(0) if self.scripts else self.usual
        return script(request)

    def __enter__(self) -> Self:
        self.thread = Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join(PATIENCE_S)


class Listener(ThreadingHTTPServer):
    daemon_threads = True  # a held request does not hold up the end of its test

    def __init__(self, address: tuple[str, int], fake: FakeServer) -> None:
        super().__init__(address, Handler)
        self.fake = fake

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet: clients that hang up are part of the tests."""


class Handler(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.fake.reply_to(Received(self.path, headers, body))
        if reply.reset:
            self.reset()
        else:
            self.send(reply)

    do_GET = do_POST  # what following a redirect would send

    def send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        parts = [reply.body] if isinstance(reply.body, bytes) else reply.body
        if isinstance(reply.body, bytes):
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        for part in parts:
            self.wfile.write(part)

    def reset(self) -> None:
        # Lingering for no time at all makes close() send a reset.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""
