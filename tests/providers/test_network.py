import socket
from ipaddress import ip_address
from typing import Any

import pytest

from elowen.providers.http import AddressRefused, TransportFailed, post_json
from elowen.providers.network import refused
from tests.fakes.server import FakeServer


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.0.1",
        "169.254.255.255",
        "fe80::1",
        "febf::1",
        "fe80::1%1",
        "fd00:ec2::254",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "0.0.0.0",  # noqa: S104
        "::",
        "::ffff:169.254.169.254",
        "::ffff:0.0.0.0",
        "::169.254.169.254",
        "64:ff9b::169.254.169.254",
        "::ffff:0:169.254.169.254",
        "2002:a9fe:a9fe::1",
    ],
)
def test_addresses_of_the_link_and_of_metadata_are_refused(address: str) -> None:
    assert refused(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "10.0.0.5",
        "192.168.1.2",
        "172.17.0.1",
        "fd00::5",
        "169.253.1.1",
        "169.255.0.1",
        "fec0::1",
        "1.1.1.1",
        "2606:4700::1111",
        "64:ff9b::1.1.1.1",
    ],
)
def test_loopback_private_and_public_addresses_are_open(address: str) -> None:
    assert not refused(ip_address(address))


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "0.0.0.0",  # noqa: S104
        "0",
        "[::]",
    ],
)
def test_no_spelling_of_a_refused_address_is_connected_to(host: str) -> None:
    with pytest.raises(AddressRefused):
        post_json(f"http://{host}:9/v1/embeddings", {}, key=None, timeout_s=5)


def test_the_operator_may_allow_them(server: FakeServer) -> None:
    url = f"http://0.0.0.0:{server.port}/v1/embeddings"

    post_json(url, {"model": "m", "input": []}, key=None, allow_link_local=True)

    assert len(server.requests) == 1


class Names:
    """A name service of which each look-up of a name gives the next answer."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.real = socket.getaddrinfo
        self.looked_up: list[str] = []

    def __call__(self, host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if host != "model.example":
            return self.real(host, port, *args, **options)
        self.looked_up.append(host)
        kind = socket.AF_INET
        return [(kind, socket.SOCK_STREAM, 6, "", (address, port)) for address in self.answers.pop(0)]


def post_by_name(server: FakeServer) -> None:
    url = f"http://model.example:{server.port}/v1/embeddings"
    post_json(url, {"model": "m", "input": []}, key="sk-1", timeout_s=5)


@pytest.mark.parametrize("addresses", [["169.254.169.254"], ["127.0.0.1", "169.254.169.254"]])
def test_a_name_that_leads_to_a_refused_address_gets_no_request(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", Names(addresses))

    with pytest.raises(AddressRefused):
        post_by_name(server)

    assert server.requests == []


def test_the_address_that_was_checked_is_the_one_connected_to(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(["127.0.0.1"], ["169.254.169.254"])
    monkeypatch.setattr(socket, "getaddrinfo", names)

    post_by_name(server)

    assert names.looked_up == ["model.example"]
    assert server.requests[0].headers["host"] == f"model.example:{server.port}"


def test_the_next_address_is_tried_where_one_does_not_listen(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", Names(["127.0.0.9", "127.0.0.1"]))

    post_by_name(server)

    assert len(server.requests) == 1


def test_no_address_that_listens_is_a_failed_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer() as server:
        pass
    monkeypatch.setattr(socket, "getaddrinfo", Names(["127.0.0.9", "127.0.0.1"]))

    with pytest.raises(TransportFailed):
        post_by_name(server)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_no_proxy_of_the_environment_gets_between(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with FakeServer() as proxy:
        monkeypatch.setenv(name, proxy.base)

        post_json(server.url, {"model": "m", "input": []}, key="sk-1")

        assert proxy.requests == []
    assert len(server.requests) == 1
