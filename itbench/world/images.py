"""Images: which references can be pulled, how big they are, and which program runs in them.

Known are the images of the app with exactly the tags its document declares, and common base images with any plausible tag.
Everything else answers as a registry answers for an unknown repository or tag. Called by the kubelets.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from itbench.core.documents.app import App, Listen, Log, Memory, Program
from itbench.core.ids import digest

PLAUSIBLE_TAG = re.compile(
    r"^(latest|stable|edge|mainline|v?\d+([._-]\w+)*([+-][\w.-]+)?|(bookworm|bullseye|trixie|alpine)([\w.-]*))$"
)
PULL_MB_PER_S = 60.0
MAX_FOUND = 4096
"""References whose answer a registry remembers."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A parsed image reference: `registry/repository:tag@digest`."""

    registry: str
    repository: str
    tag: str
    digest: str = ""

    @property
    def short(self) -> str:
        """Without tag, as people write it (`nginx`, `ghcr.io/org/app`)."""
        if self.registry == "docker.io":
            return self.repository.removeprefix("library/")
        return f"{self.registry}/{self.repository}"

    @property
    def full(self) -> str:
        """With registry and tag, as container runtimes report it."""
        return f"{self.registry}/{self.repository}:{self.tag}"


@lru_cache(4096)
def parse_image(text: str) -> Reference | None:
    """`nginx`, `ghcr.io/org/app:1.2`, `host:5000/x@sha256:...` -> Reference; None when the name is invalid."""
    name, _, sha = text.partition("@")
    head, slash, tail = name.rpartition("/")
    last, colon, tag = tail.partition(":")
    path = head + slash + last
    if not re.fullmatch(r"[a-z0-9]+([._:/-]+[a-z0-9]+)*", path) or (
        colon and not re.fullmatch(r"[\w][\w.-]{0,127}", tag)
    ):
        return None
    first, _, rest = path.partition("/")
    if rest and ("." in first or ":" in first or first == "localhost"):
        return Reference(first, rest, tag or "latest", sha)
    return Reference("docker.io", path if rest else f"library/{path}", tag or "latest", sha)


def _base(image: str, process: str, **more: object) -> Program:
    return Program.model_validate({"image": image, "tags": ["*"], "process": process, **more})


_PROBED = ("/healthz", "/readyz", "/-/healthy", "/-/ready")


def _web(image: str, process: str, port: int, body: str = "", **more: object) -> Program:
    paths, root = more.pop("paths", None), more.pop("root", "")
    front = {} if root else {"/": body}
    found = {**front, **dict.fromkeys(_PROBED, "ok"), **(paths if isinstance(paths, dict) else {})}
    listens = [Listen(port=port, paths=found, root=str(root))]
    return _base(image, process, listens=listens, start_s=0.2, **more)


_E2E = "registry.k8s.io/e2e-test-images"
_HTDOCS = "/usr/local/apache2/htdocs"
_WELCOME = (
    "<!DOCTYPE html>\n<html>\n<head>\n<title>Welcome to nginx!</title>\n</head>\n"
    "<body>\n<h1>Welcome to nginx!</h1>\n</body>\n</html>\n"
)
_ALPINE = {"/etc/os-release": 'NAME="Alpine Linux"\nID=alpine\nVERSION_ID=3.22.1\nPRETTY_NAME="Alpine Linux v3.22"\n'}
_DEBIAN = {
    "/etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n'
}
_QUIET = Memory(base=6)

_MIRRORS = {"httpd": "httpd", "nginx": "nginx", "busybox": "busybox"}
"""Base images that the official test suite pulls under another name."""

_AGNHOST: dict[str, list[Listen]] = {
    "netexec": [Listen(port=8080, flag="--http-port", serves="netexec")],
    "serve-hostname": [Listen(port=9376, flag="--port", paths={"/": "{hostname}"})],
    "guestbook": [Listen(port=80, flag="--http-port", serves="guestbook")],
    "liveness": [Listen(port=8080, serves="liveness")],
    "test-webserver": [Listen(port=80, flag="--port", root="/")],
    "webhook": [Listen(port=443, flag="--port", serves="webhook")],
    "crd-conversion-webhook": [Listen(port=443, flag="--port", serves="conversion")],
}
"""What the commands of the official test image open."""

BASE_PROGRAMS: tuple[Program, ...] = (
    _base("registry.k8s.io/pause", "/pause", shell="none", size_mb=0.3, start_s=0.1, memory_mb=Memory(base=0.4)),
    _web(
        "nginx",
        "nginx: master process nginx -g daemon off;",
        80,
        _WELCOME,
        shell="bash",
        size_mb=72,
        files=_DEBIAN,
        memory_mb=_QUIET,
    ),
    _web(
        "nginxinc/nginx-unprivileged",
        "nginx: master process nginx -g daemon off;",
        8080,
        _WELCOME,
        size_mb=72,
        memory_mb=_QUIET,
    ),
    _web(
        "httpd",
        "httpd -DFOREGROUND",
        80,
        shell="bash",
        size_mb=58,
        files={**_DEBIAN, f"{_HTDOCS}/index.html": "<html><body><h1>It works!</h1></body></html>\n"},
        root=_HTDOCS,
    ),
    _base(f"{_E2E}/agnhost", "/agnhost pause", commands=_AGNHOST, size_mb=55, start_s=0.2, memory_mb=_QUIET),
    _web(f"{_E2E}/nautilus", "/nautilus", 80, size_mb=0.7, paths={"/data.json": '{\n    "image": "nautilus.jpg"\n}\n'}),
    _base("alpine", "/bin/sh", runs_s=0.0, size_mb=3.6, start_s=0.1, memory_mb=Memory(base=1), files=_ALPINE),
    _base("debian", "bash", runs_s=0.0, shell="bash", size_mb=48, start_s=0.1, memory_mb=Memory(base=2), files=_DEBIAN),
    _base("ubuntu", "/bin/bash", runs_s=0.0, shell="bash", size_mb=29, start_s=0.1, memory_mb=Memory(base=2)),
    _base("busybox", "sh", runs_s=0.0, size_mb=2.1, start_s=0.1, memory_mb=Memory(base=1)),
    _base("curlimages/curl", "/entrypoint.sh", runs_s=0.0, size_mb=9, start_s=0.1, files=_ALPINE),
    _base("nicolaka/netshoot", "zsh", runs_s=0.0, shell="bash", size_mb=201, start_s=0.1, files=_ALPINE),
    _base("python", "python3", runs_s=0.0, shell="bash", size_mb=360, files=_DEBIAN),
    _base(
        "redis",
        "redis-server *:6379",
        listens=[Listen(port=6379, protocol="redis")],
        size_mb=41,
        memory_mb=Memory(base=9),
    ),
    _base(
        "valkey/valkey",
        "valkey-server *:6379",
        listens=[Listen(port=6379, protocol="redis")],
        size_mb=41,
        memory_mb=Memory(base=9),
    ),
    _base(
        "postgres",
        "postgres",
        listens=[Listen(port=5432, protocol="postgres")],
        shell="bash",
        size_mb=150,
        memory_mb=Memory(base=48),
        files=_DEBIAN,
    ),
    _base(
        "registry.k8s.io/coredns/coredns",
        "/coredns -conf /etc/coredns/Corefile",
        shell="none",
        size_mb=20,
        memory_mb=Memory(base=22),
        listens=[
            Listen(port=53, protocol="udp"),
            Listen(port=8080, paths={"/health": "OK"}),
            Listen(port=8181, paths={"/ready": "OK"}),
            Listen(port=9153, paths={"/metrics": ""}),
        ],
        log=Log(
            line="{message}",
            started=(".:53", "CoreDNS-1.12.1", "linux/amd64, go1.24.1, 707c7c1"),
            request=None,
            error=None,
        ),
    ),
    _web(
        "registry.k8s.io/metrics-server/metrics-server",
        "/metrics-server",
        10250,
        shell="none",
        size_mb=22,
        memory_mb=Memory(base=28),
    ),
    _web(
        "registry.k8s.io/kube-state-metrics/kube-state-metrics", "/kube-state-metrics", 8080, shell="none", size_mb=14
    ),
    _web("quay.io/prometheus/prometheus", "/bin/prometheus", 9090, size_mb=110, memory_mb=Memory(base=260)),
    _web("prom/prometheus", "/bin/prometheus", 9090, size_mb=110, memory_mb=Memory(base=260)),
    _web("quay.io/prometheus/alertmanager", "/bin/alertmanager", 9093, size_mb=33),
    _web("quay.io/prometheus/node-exporter", "/bin/node_exporter", 9100, size_mb=12),
    _web("quay.io/prometheus/blackbox-exporter", "/bin/blackbox_exporter", 9115, size_mb=13),
    _web("grafana/grafana", "grafana server", 3000, size_mb=180, memory_mb=Memory(base=110)),
    _web("grafana/loki", "/usr/bin/loki", 3100, shell="none", size_mb=40, memory_mb=Memory(base=140)),
    _web(
        "jaegertracing/jaeger", "/cmd/jaeger/jaeger-linux", 16686, shell="none", size_mb=45, memory_mb=Memory(base=120)
    ),
    _web(
        "jaegertracing/all-in-one",
        "/go/bin/all-in-one-linux",
        16686,
        shell="none",
        size_mb=33,
        memory_mb=Memory(base=120),
    ),
    _base(
        "otel/opentelemetry-collector-contrib",
        "/otelcol-contrib",
        shell="none",
        size_mb=90,
        memory_mb=Memory(base=90),
        listens=[
            Listen(port=4317, protocol="grpc"),
            Listen(port=4318),
            Listen(port=13133, paths={"/": "{}"}),
            Listen(port=8888),
        ],
    ),
)


@dataclass(frozen=True, slots=True)
class Image:
    """A pulled image."""

    reference: Reference
    program: Program
    name: str

    @property
    def ident(self) -> str:
        """`repo@sha256:...`, drawn from the reference."""
        ref = self.reference
        return f"{ref.registry}/{ref.repository}@sha256:{digest('image', ref.full).hex()}"

    @property
    def size_bytes(self) -> int:
        """Compressed size, a little different for each tag."""
        wobble = digest("size", self.reference.full)[0] / 255
        return int(self.program.size_mb * 1e6 * (0.97 + 0.06 * wobble))

    @property
    def pull_s(self) -> float:
        """How long a pull takes on an idle node."""
        return 0.4 + self.size_bytes / (PULL_MB_PER_S * 1e6)


class Registry:
    """All registries at once: resolves references to images."""

    def __init__(self, app: App | None) -> None:
        self._programs: dict[str, list[tuple[str, Program]]] = {}
        self._found: dict[str, Image | None] = {}
        """What has been looked for: every scrape asks for the image of every container."""
        for program in BASE_PROGRAMS:
            self._add(program.image, program)
            if program.image in _MIRRORS:
                mirror = f"{_E2E}/{_MIRRORS[program.image]}"
                self._add(mirror, program.model_copy(update={"image": mirror}))
        for name, program in (app.programs if app else {}).items():
            self._add(name, program)

    def _add(self, name: str, program: Program) -> None:
        reference = parse_image(program.image)
        if reference is not None:
            # The app's own programs come first: it may declare nginx with exact tags of its own.
            self._programs.setdefault(reference.short, []).insert(0, (name, program))

    def find(self, text: str) -> Image | None:
        """The image of a reference, or None when a pull would not find it."""
        if text not in self._found:
            if len(self._found) >= MAX_FOUND:
                self._found.clear()
            self._found[text] = self._search(text)
        return self._found[text]

    def _search(self, text: str) -> Image | None:
        reference = parse_image(text)
        if reference is None:
            return None
        for name, program in self._programs.get(reference.short, ()):
            if reference.tag in program.tags or reference.tag in program.releases:
                return Image(reference, program, name)
            if "*" in program.tags and PLAUSIBLE_TAG.match(reference.tag):
                return Image(reference, program, name)
        return None


def pull_error(text: str) -> str:
    """The error of a pull that finds nothing, as containerd words it."""
    reference = parse_image(text)
    if reference is None:
        return f'couldn\'t parse image name "{text}": invalid reference format'
    full = reference.full
    return (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{full}": '
        f'failed to resolve reference "{full}": {full}: not found'
    )
