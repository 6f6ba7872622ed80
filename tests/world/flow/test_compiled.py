"""Loading is light and the machine code finds a home."""

import subprocess
import sys
from pathlib import Path

from itbench.world.flow import compiled


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
    assert compiled.first_writable([blocked / "x", user]) == str(user)
    assert user.is_dir()
    assert compiled.first_writable([blocked / "x"]) is None


def test_the_digest_covers_every_module_of_the_kernel():
    """A change in any module that the kernel imports makes a new cache."""
    here = Path(compiled.__file__).parent
    uses = {
        p.name for p in here.glob("*.py") if "flow.jit" in p.read_text() or p.name in ("jit.py", "layout.py", "spec.py")
    }
    assert uses - {"compiled.py"} == set(compiled.SOURCES)
