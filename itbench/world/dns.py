"""What the cluster's DNS servers answer: the Corefile that the CoreDNS pods have mounted decides about names of the cluster.

Modelled are the plugins `template` (an answer or an error for names of a zone that match), `rewrite` (names), `hosts` and the
zone of `kubernetes`. A file that cannot be read leaves the former answers, as `reload` does, which here are the ordinary ones.
All servers answer like the first that is ready. Pods with a resolver of their own (dnsPolicy Default or None) are not touched.
Where no kube-dns Service stands, every name of the cluster resolves. Called by `reach`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from itbench.kube.client import Obj
from itbench.world.kubelet.state import PodState
from itbench.world.objects import Objects

SERVICE = ("kube-system", "kube-dns")
FILE = "Corefile"
CLUSTER = "cluster.local."
ORDINARY = "."
"""The answer of the zone of the cluster, or of a server outside."""
NXDOMAIN, SERVFAIL, TIMEOUT = "nxdomain", "servfail", "timeout"
_ANSWER = re.compile(r"\bIN\s+A\s+(?P<address>\d+\.\d+\.\d+\.\d+)")


@dataclass(frozen=True, slots=True)
class Template:
    """One `template` block: `rcode`, or an address, for names of its zones that one of its patterns finds."""

    zones: tuple[str, ...]
    patterns: tuple[re.Pattern[str], ...]
    answer: str

    def covers(self, name: str) -> bool:
        """Whether it answers for a name (with the dot at its end)."""
        inside = any(name == zone or name.endswith(f".{zone}".replace("..", ".")) for zone in self.zones)
        return inside and (not self.patterns or any(pattern.search(name) for pattern in self.patterns))


@dataclass(frozen=True, slots=True)
class Corefile:
    """The parts of a Corefile that decide about names of the cluster."""

    templates: tuple[Template, ...] = ()
    rewrites: tuple[tuple[str, str], ...] = ()
    hosts: tuple[tuple[str, str], ...] = ()
    zones: tuple[str, ...] = (CLUSTER,)

    def answer(self, name: str) -> str:
        """`ORDINARY`, an error, or an address for an absolute name."""
        name = dict(self.rewrites).get(name, name)
        for template in self.templates:
            if template.covers(name):
                return template.answer
        known = dict(self.hosts).get(name)
        if known:
            return known
        ours = name.endswith(f".{CLUSTER}") and not any(name.endswith(f".{zone}") for zone in self.zones)
        return NXDOMAIN if ours else ORDINARY


class Unreadable(ValueError):
    """The text is no Corefile."""


@lru_cache(64)
def parse(text: str) -> Corefile:
    """Read a Corefile.

    Raises:
        Unreadable: braces that do not match, or a pattern that is no regular expression.
    """
    templates: list[Template] = []
    rewrites: list[tuple[str, str]] = []
    hosts: list[tuple[str, str]] = []
    zones: tuple[str, ...] = ()
    for words, block in _directives(text):
        if words[0] == "template":
            templates.append(_template(words, block))
        elif words[0] == "rewrite":
            rewrites += _rewrite(words[1:])
        elif words[0] == "hosts":
            hosts += [(_absolute(name), line[0]) for line in block if line[0][:1].isdigit() for name in line[1:]]
        elif words[0] == "kubernetes":
            zones += tuple(_absolute(zone) for zone in words[1:] if not zone.endswith(".arpa"))
    return Corefile(tuple(templates), tuple(rewrites), tuple(hosts), zones)


Words = list[str]


def _directives(text: str) -> list[tuple[Words, list[Words]]]:
    """(plugin with its arguments, lines of its block) of every server block."""
    found: list[tuple[Words, list[Words]]] = []
    depth = 0
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        opens, closes = words[-1] == "{", words[0] == "}"
        if closes:
            depth -= 1
        elif depth == 1:
            found.append((words[:-1] if opens else words, []))
        elif depth >= 2:
            found[-1][1].append(words)
        depth += opens
        if depth < 0:
            raise Unreadable("a brace too many")
    if depth:
        raise Unreadable("a brace is missing")
    return found


def _template(words: Words, block: list[Words]) -> Template:
    zones = tuple(map(_absolute, words[3:])) or (".",)
    try:
        patterns = tuple(re.compile(line[1].strip('"')) for line in block if line[0] == "match" and len(line) > 1)
    except re.error as error:
        raise Unreadable(str(error)) from error
    for line in block:
        if line[0] == "rcode" and len(line) > 1 and line[1] != "NOERROR":
            return Template(zones, patterns, SERVFAIL if line[1] == "SERVFAIL" else NXDOMAIN)
        found = _ANSWER.search(" ".join(line))
        if line[0] == "answer" and found:
            return Template(zones, patterns, found["address"])
    return Template(zones, patterns, NXDOMAIN)


def _rewrite(words: Words) -> list[tuple[str, str]]:
    """`name [exact] FROM TO`."""
    rest = [word for word in words if word not in ("stop", "continue", "name", "exact")]
    return [(_absolute(rest[0]), _absolute(rest[1]))] if words[:1] == ["name"] and len(rest) == 2 else []


def _absolute(name: str) -> str:
    return name if name.endswith(".") else f"{name}."


def candidates(host: str, namespace: str) -> list[str]:
    """The absolute names that a resolver tries for a name, in order (`ndots:5`)."""
    if host.endswith("."):
        return [host]
    search = [
        f"{host}.{domain}." for domain in (f"{namespace}.svc.cluster.local", "svc.cluster.local", "cluster.local")
    ]
    return [*search, f"{host}."] if host.count(".") < 5 else [f"{host}.", *search]


class Names:
    """What pods of a cluster are told about names.

    Args:
        objects: the mirror.
        state: the kubelet's state of a pod.
    """

    def __init__(self, objects: Objects, state: Callable[[str, str], PodState | None]) -> None:
        self.objects, self.state = objects, state

    def ask(self, source: Obj | None, host: str, stands: Callable[[str], bool]) -> str:
        """What a pod is told about a name.

        Args:
            source: the pod that asks; None: a client outside of the cluster.
            host: the name.
            stands: whether an absolute name is known, in the cluster or outside.

        Returns:
            `ORDINARY` where nothing is in the way, an address that is given instead, `NXDOMAIN`, `SERVFAIL` or `TIMEOUT`.
        """
        if source is None or source["spec"].get("dnsPolicy", "ClusterFirst") not in (
            "ClusterFirst",
            "ClusterFirstWithHostNet",
        ):
            return ORDINARY
        if self.objects.get("services", *SERVICE) is None:
            return ORDINARY
        file = self._corefile()
        if file is None:
            return TIMEOUT
        for name in candidates(host, source["metadata"].get("namespace", "default")):
            said = file.answer(name)
            if said == ORDINARY and stands(name):
                return ORDINARY
            if said not in (ORDINARY, NXDOMAIN):
                return said
        return NXDOMAIN

    def _corefile(self) -> Corefile | None:
        """What the first ready server goes by; None when none is ready."""
        ready = sorted(
            (reference["namespace"], reference["name"])
            for piece in self.objects.slices(*SERVICE)
            for endpoint in piece.get("endpoints") or ()
            if (endpoint.get("conditions") or {}).get("ready") is not False and (reference := endpoint.get("targetRef"))
        )
        for namespace, name in ready:
            pod = self.state(namespace, name)
            texts = [files[FILE] for files in pod.volumes.values() if FILE in files] if pod is not None else []
            try:
                return parse(texts[0]) if texts else Corefile()
            except Unreadable:
                return Corefile()
        return None
