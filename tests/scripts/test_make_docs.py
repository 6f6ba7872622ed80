"""Generated documentation is what its sources say now."""

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "scripts" / "make_docs.py"
SPEC = importlib.util.spec_from_file_location("make_docs", FILE)
assert SPEC is not None and SPEC.loader is not None
make_docs = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make_docs)


@pytest.mark.parametrize("name", make_docs.PAGES)
def test_pages_are_up_to_date(name: str) -> None:
    """`make docs` would change nothing."""
    assert (make_docs.HOME / name).read_text() == make_docs.PAGES[name]()
