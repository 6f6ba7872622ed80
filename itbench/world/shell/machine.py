"""What the shell may ask of the container it runs in. Containers implement it (`world/containers.py`), tests fake it."""

from typing import Protocol

from itbench.kube.door import Request, Response


class Machine(Protocol):
    """One running container, seen from inside."""

    hostname: str
    user: str
    workdir: str
    env: dict[str, str]

    def now(self) -> float:
        """World seconds."""

    def calendar(self) -> float:
        """World seconds as the clock on the wall of those outside shows them: what `date` prints."""

    def read(self, path: str) -> str | None:
        """Content of a file, None if there is none."""

    def write(self, path: str, text: str) -> str:
        """Write a file; returns an error text such as `Read-only file system`, empty when done."""

    def remove(self, path: str) -> bool:
        """Remove a file; False if there is none."""

    def entries(self, path: str) -> list[str] | None:
        """Names in a folder (folders end with a slash), None if there is no such folder."""

    def modified(self, path: str) -> float:
        """When a file was made or last changed, in the seconds of `calendar`."""

    def ports(self) -> list[tuple[int, str]]:
        """(port, `tcp` or `udp`) of everything that listens here."""

    def processes(self) -> list[tuple[int, str, str]]:
        """(pid, user, command line)."""

    def memory(self) -> tuple[float, float]:
        """(used, total) MiB."""

    def has(self, command: str) -> bool:
        """Whether the image brings this command."""

    def resolve(self, host: str) -> list[str]:
        """Addresses of a name, empty if there are none."""

    def dial(self, host: str, port: int) -> str:
        """`ok`, `refused`, `timeout`, `nxdomain`, `denied`, `tls`."""

    def http(self, host: str, port: int, request: Request) -> tuple[Response | None, str]:
        """An HTTP request from this container."""

    def redis(self, host: str, port: int, argv: list[str]) -> tuple[str | None, str]:
        """A command to a Redis-like store: (reply as the client prints it, or None and why not)."""
