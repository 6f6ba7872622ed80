"""Files of the kernel as a container reads them: `/proc` and `/sys/fs/cgroup`, from the same numbers that `free` and `ps` print.

`inside` asks when such a file is read, and lists the names.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isinf

CORES = 8
KERNEL = "6.8.0-64-generic"
_CPU = (
    "processor\t: {n}\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz\n"
    "cpu MHz\t\t: 2500.000\ncache size\t: 36608 KB\nsiblings\t: {cores}\ncore id\t\t: {n}\ncpu cores\t: {cores}\n\n"
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the kernel knows of a container.

    Attributes:
        used_mb, total_mb: memory in MiB as `free` shows it; limit_mb: of the cgroup, inf without.
        cpus: CPU limit in cores, inf without.
        age_s: seconds since the container's start; command: of process 1.
        mounts: (mount point, whether it is read-only).
        memory, CPU and mounts are the model's; everything else is that of the nodes' kernel.
    """

    used_mb: float
    total_mb: float
    limit_mb: float
    cpus: float
    age_s: float
    command: str
    mounts: tuple[tuple[str, bool], ...]


def _meminfo(facts: Facts) -> str:
    free = max(facts.total_mb - facts.used_mb, 0.0)
    rows = {"MemTotal": facts.total_mb, "MemFree": free, "MemAvailable": free, "Buffers": 0.0, "Cached": 0.0}
    rows |= {"SwapCached": 0.0, "SwapTotal": 0.0, "SwapFree": 0.0}
    return "".join(f"{name + ':':<16}{int(value * 1024):>8} kB\n" for name, value in rows.items())


def mount_lines(facts: Facts) -> list[tuple[str, str, str, str]]:
    """(device, mount point, type, options) of everything that is mounted."""
    rows = [
        ("overlay", "/", "overlay", "rw,relatime"),
        ("proc", "/proc", "proc", "rw,nosuid,nodev,noexec,relatime"),
        ("tmpfs", "/dev", "tmpfs", "rw,nosuid,size=65536k,mode=755,inode64"),
        ("devpts", "/dev/pts", "devpts", "rw,nosuid,noexec,relatime,gid=5,mode=620,ptmxmode=666"),
        ("sysfs", "/sys", "sysfs", "ro,nosuid,nodev,noexec,relatime"),
        ("cgroup", "/sys/fs/cgroup", "cgroup2", "ro,nosuid,nodev,noexec,relatime"),
    ]
    for path, read_only in (
        *facts.mounts,
        ("/etc/hosts", False),
        ("/etc/hostname", False),
        ("/etc/resolv.conf", False),
    ):
        rows.append(("/dev/sda1", path, "ext4", f"{'ro' if read_only else 'rw'},relatime"))
    return rows


def _mounts(facts: Facts) -> str:
    return "".join(f"{' '.join(row)} 0 0\n" for row in mount_lines(facts))


def _status(facts: Facts) -> str:
    name = facts.command.split(" ")[0].rsplit("/", 1)[-1][:15]
    size = int(facts.used_mb * 1024)
    return f"Name:\t{name}\nState:\tS (sleeping)\nTgid:\t1\nPid:\t1\nPPid:\t0\nVmRSS:\t{size:>8} kB\nThreads:\t1\n"


def _limit(value: float) -> str:
    return "max\n" if isinf(value) else f"{int(value)}\n"


FILES: dict[str, Callable[[Facts], str]] = {
    "/proc/meminfo": _meminfo,
    "/proc/cpuinfo": lambda facts: "".join(_CPU.format(n=n, cores=CORES) for n in range(CORES)),
    "/proc/uptime": lambda facts: f"{facts.age_s:.2f} {facts.age_s * CORES:.2f}\n",
    "/proc/version": lambda facts: f"Linux version {KERNEL} (buildd@lcy02) #67-Ubuntu SMP\n",
    "/proc/mounts": _mounts,
    "/proc/1/cmdline": lambda facts: "\0".join(facts.command.split(" ")) + "\0",
    "/proc/1/comm": lambda facts: facts.command.split(" ")[0].rsplit("/", 1)[-1][:15] + "\n",
    "/proc/1/status": _status,
    "/proc/self/cgroup": lambda facts: "0::/\n",
    "/sys/fs/cgroup/memory.current": lambda facts: f"{int(facts.used_mb * 2**20)}\n",
    "/sys/fs/cgroup/memory.max": lambda facts: _limit(facts.limit_mb * 2**20),
    "/sys/fs/cgroup/cpu.max": lambda facts: f"{_limit(facts.cpus * 100_000).strip()} 100000\n",
}


def read(path: str, facts: Callable[[], Facts]) -> str | None:
    """The text of a kernel file, None when it is none."""
    made = FILES.get(path)
    return made(facts()) if made is not None else None
