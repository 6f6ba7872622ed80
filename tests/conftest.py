"""Tests reach nothing but the loopback."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("itbench", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("itbench")


@pytest.fixture(autouse=True)
def _loopback_only(socket_disabled_hosts):
    """Every test: connections leave for 127.0.0.1 and ::1 only."""


@pytest.fixture
def socket_disabled_hosts():
    """Blocks other hosts for the time of a test."""
    from pytest_socket import _remove_restrictions, socket_allow_hosts

    socket_allow_hosts(["127.0.0.1", "::1", "localhost"], allow_unix_socket=True)
    yield
    _remove_restrictions()
