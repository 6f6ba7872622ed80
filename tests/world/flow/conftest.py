"""Gives tests the helpers beside this file (tests are no package)."""

import importlib.util
import sys
from pathlib import Path

import pytest


def _load(name):
    full = f"flow_tests_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, Path(__file__).with_name(f"{name}.py"))
        sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full])
    return sys.modules[full]


@pytest.fixture(scope="session")
def lab():
    return _load("lab")


@pytest.fixture(scope="session")
def reference():
    return _load("reference")
