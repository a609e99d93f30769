"""Connections to checked addresses only, with one deadline for everything that happens on them."""

import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import httpcore

from elowen.providers.errors import AddressRefused

type Address = IPv4Address | IPv6Address

# Instance metadata of the clouds: whoever reads it holds the machine's credentials. Loopback and
# private addresses stay open, because model servers of one's own live there.
REFUSED = [
    ip_network(network)
    for network in (
        "169.254.0.0/16",  # link-local, and the metadata of most clouds
        "fe80::/10",  # link-local
        "fd00:ec2::254/128",  # AWS over IPv6
        "100.100.100.200/32",  # Alibaba
        "168.63.129.16/32",  # Azure
        "192.0.0.192/32",  # Oracle
        "0.0.0.0/32",  # this machine by another name
        "::/128",
    )
]
# IPv4 dressed as IPv6: mapped, compatible, and translated (RFC 4291, RFC 6052).
WRAPPINGS = [ip_network(network) for network in ("::ffff:0:0/96", "::/96", "64:ff9b::/96", "::ffff:0:0:0/96")]


def refused(address: Address) -> bool:
    return any(form in network for form in forms(address) for network in REFUSED)


def forms(address: Address) -> Iterator[Address]:
    """Give the address and the IPv4 address inside it, if there is one."""
    yield address
    if isinstance(address, IPv6Address):
        if any(address in wrapping for wrapping in WRAPPINGS):
            yield IPv4Address(int(address) & 0xFFFFFFFF)
        if address.sixtofour:
            yield address.sixtofour


def resolve(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


class Deadline:
    def __init__(self, seconds: float) -> None:
        self.at = time.monotonic() + seconds

    def left(self, timeout_error: type[httpcore.TimeoutException]) -> float:
        left = self.at - time.monotonic()
        if left <= 0:
            raise timeout_error
        return left


class CheckedNetwork(httpcore.NetworkBackend):
    """Looks a name up once, checks what came out, and connects to that very address.

    A name that answers differently the second time gains nothing. One address that may not be
    reached refuses the whole name.
    """

    def __init__(self, deadline: Deadline, *, allow_link_local: bool) -> None:
        self.deadline = deadline
        self.allow_link_local = allow_link_local
        self.plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        failure: Exception = httpcore.ConnectError()
        for address in self.addresses(host, port):
            left = self.deadline.left(httpcore.ConnectTimeout)
            try:
                return TimedStream(self.plain.connect_tcp(address, port, left), self.deadline)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    def addresses(self, host: str, port: int) -> list[str]:
        try:
            addresses = resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError from error
        if not self.allow_link_local and any(refused(ip_address(address)) for address in addresses):
            raise AddressRefused
        return addresses


class TimedStream(httpcore.NetworkStream):
    """Gives every step what is left of the deadline, so that an answer in drops ends too."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self.stream = stream
        self.deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self.stream.read(max_bytes, self.deadline.left(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.stream.write(buffer, self.deadline.left(httpcore.WriteTimeout))

    def close(self) -> None:
        self.stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self.deadline.left(httpcore.ConnectTimeout)
        return TimedStream(self.stream.start_tls(ssl_context, server_hostname, left), self.deadline)

    def get_extra_info(self, info: str) -> Any:
        return self.stream.get_extra_info(info)
