"""What every test shares: a deterministic Hypothesis and no way out to the network."""

import atexit
import ipaddress
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

# Model configurations are built from their classes, never fetched.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# The shipped prices alone: a table that this machine has refreshed would move every figure.
_PRICES = tempfile.mkdtemp(prefix="clusterfit-prices-")
os.environ["CLUSTERFIT_PRICES"] = _PRICES
atexit.register(shutil.rmtree, _PRICES, ignore_errors=True)
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

settings.register_profile(
    "clusterfit",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("clusterfit")


def _is_loopback(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else str(host or "")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name in ("localhost", "")


@pytest.fixture(autouse=True, scope="session")
def _loopback_only() -> Iterator[None]:
    """Refuse, in this process, to look up or connect to any other host."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex
    getaddrinfo = socket.getaddrinfo

    def check(host: object) -> None:
        if not _is_loopback(host):
            raise AssertionError(f"a test reached out to {host!r}")

    def check_address(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and not _is_loopback(address[0]):
            self.close()
            check(address[0])

    def guarded_connect(self: socket.socket, address: Any) -> None:
        check_address(self, address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        check_address(self, address)
        return connect_ex(self, address)

    def guarded_getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        check(host)
        return getaddrinfo(host, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded_connect)
        patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
        patch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the repository."""
    return ROOT
