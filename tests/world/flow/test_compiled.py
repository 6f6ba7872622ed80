"""Loading is light and the machine code finds a home."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from itbench.core.codec import loads
from itbench.world.flow import compiled
from itbench.world.flow.native import Code


def test_import_does_not_load_numba():
    """Commands that never run a net do not pay for numba."""
    code = "import sys, itbench.world.flow; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_read_only_package_uses_the_users_cache(monkeypatch, tmp_path):
    """Where the package cannot be written the cache lies below XDG_CACHE_HOME; both names carry the digest of the sources."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    beside, user = compiled.cache_dirs()
    assert beside.name == user.name and user.parent == tmp_path / "itbench"
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert compiled.first_writable([blocked / "x", user]) == user
    assert user.is_dir()
    assert compiled.first_writable([blocked / "x"]) is None


def test_damaged_code_is_not_called(tmp_path):
    """What is kept comes back whole or not at all."""
    code = Code("run", b"\x7fELF\nand more\n")
    compiled.keep(tmp_path, code)
    assert compiled.kept(tmp_path) == code
    assert [file.name for file in tmp_path.iterdir()] == ["kernel"]
    (tmp_path / "kernel").write_bytes((tmp_path / "kernel").read_bytes()[:-1])
    assert compiled.kept(tmp_path) is None
    assert compiled.kept(tmp_path / "nowhere") is None


_NET = """
import sys
from itbench.core.codec import dumps
from itbench.world.flow import Edge, Flow, FlowSpec, Station

def net():
    stations = (Station("front", 2, concurrency=4), Station("back", 1, capacity_cpu=0.3, queue=50))
    edges = (Edge("enter", -1, 0, work_s=0.01), Edge("call", 0, 1, work_s=0.02, timeout_s=0.3, retries=2, backoff_s=0.1))
    flow = Flow(FlowSpec(stations, edges), slots=64)
    for station, slot in ((0, 0), (0, 1), (1, 0)):
        flow.set_ready(station, slot, 1.0)
    flow.set_rate(0, 30.0)
    return flow
"""
_INTERPRETED = """
from itbench.world.flow import kernel
flow = net()
kernel.run(flow._st, 5.0, 0.0)
sys.stdout.buffer.write(dumps(flow.save()))
"""


def test_linked_code_does_what_the_sources_say():
    """Called without numba, the kernel moves every array as its sources do when Python interprets them."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _NET + _INTERPRETED], env=environment, capture_output=True, check=True
    )
    names: dict[str, Any] = {}
    exec(_NET, names)
    flow = names["net"]()
    flow.advance(5.0)
    assert flow.steps > 50 and flow.counter("timed_out")[1] > 0
    wanted = loads(done.stdout)
    for name, array in flow.save().items():
        np.testing.assert_allclose(array, wanted[name], rtol=1e-9, atol=1e-9, err_msg=name)


def test_the_digest_covers_every_module_of_the_kernel():
    """A change in any module that the kernel imports makes a new cache."""
    here = Path(compiled.__file__).parent
    uses = {
        p.name
        for p in here.glob("*.py")
        if "flow.jit" in p.read_text() or p.name in ("jit.py", "layout.py", "native.py", "spec.py")
    }
    assert uses - {"compiled.py"} == set(compiled.SOURCES)
