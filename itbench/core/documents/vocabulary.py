"""The closed words of a typed diagnosis: mechanisms, forms of entities, verdicts.

They are shown to the agent in every task alike, so that they hint at nothing; `itbench.core.documents.task` checks answers
against them, the library checks truths against them, and `itbench.evaluate` compares canonical forms.
"""

from difflib import get_close_matches

from itbench.core.documents.mechanisms import MEANINGS


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


MECHANISMS: tuple[str, ...] = tuple(MEANINGS)
"""How a cause acts. `none` belongs to the answer that nothing is wrong."""

VERDICTS: tuple[str, ...] = (
    "incident",
    "no-incident",
    "recovered",
    "no-change",
    "external",
    "component",
    "compliant",
    "violating",
    "compromised",
    "no-compromise",
    "complete",
    "incomplete",
)
"""The judgements that a submission may state about the whole case."""

NAMESPACED_KINDS: tuple[str, ...] = _words(
    """
    configmap cronjob daemonset deployment endpointslice horizontalpodautoscaler httproute ingress job lease limitrange
    networkpolicy persistentvolumeclaim pod poddisruptionbudget prometheusrule replicaset resourcequota role rolebinding
    secret service serviceaccount statefulset
    """
)
CLUSTER_KINDS: tuple[str, ...] = _words(
    """
    clusterrole clusterrolebinding customresourcedefinition ingressclass mutatingwebhookconfiguration namespace node
    persistentvolume priorityclass storageclass validatingadmissionpolicy validatingadmissionpolicybinding
    validatingwebhookconfiguration
    """
)
OUTSIDE_KINDS: tuple[str, ...] = _words(
    "nodepool rack zone link topic table database policy query account client journey fqdn registry"
)
"""Entities that are no Kubernetes objects; what follows the slash is a name as the page or telemetry spells it."""

_SHORT = {
    "cj": "cronjob",
    "cm": "configmap",
    "crd": "customresourcedefinition",
    "deploy": "deployment",
    "ds": "daemonset",
    "hpa": "horizontalpodautoscaler",
    "ing": "ingress",
    "netpol": "networkpolicy",
    "no": "node",
    "ns": "namespace",
    "pc": "priorityclass",
    "pdb": "poddisruptionbudget",
    "po": "pod",
    "pv": "persistentvolume",
    "pvc": "persistentvolumeclaim",
    "quota": "resourcequota",
    "rs": "replicaset",
    "sa": "serviceaccount",
    "sc": "storageclass",
    "sts": "statefulset",
    "svc": "service",
}
_KNOWN = (*NAMESPACED_KINDS, *CLUSTER_KINDS, *OUTSIDE_KINDS)

ENTITY_FORMS: tuple[str, ...] = (
    "KIND/NAMESPACE/NAME for a namespaced Kubernetes object, such as deployment/shop/checkout",
    "KIND/NAME for an object of the whole cluster, such as node/node-2",
    *(f"{kind}/NAME" for kind in OUTSIDE_KINDS),
)
"""What an agent is told about the spelling of entities."""


def canonical_kind(kind: str) -> str:
    """`Deployments.apps`, `deploy` or `Deployment` -> `deployment`; an unknown kind comes back in lower case."""
    word = kind.strip().lower().split(".", 1)[0]
    word = _SHORT.get(word, word)
    for singular in (word, word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("ies") + "y"):
        if singular in _KNOWN:
            return singular
    return word


def canonical_entity(text: str) -> str:
    """The one spelling of an entity.

    Args:
        text: `kind/namespace/name` or `kind/name`; the kind in any spelling that kubectl takes.

    Returns:
        The same with the canonical kind; outside kinds keep everything behind the first slash.

    Raises:
        ValueError: fewer or more parts than the kind has, or an empty part.
    """
    kind, _, rest = text.strip().partition("/")
    kind = canonical_kind(kind)
    parts = [rest.strip()] if kind in OUTSIDE_KINDS else [part.strip() for part in rest.split("/")]
    wanted = {1} if kind in (*CLUSTER_KINDS, *OUTSIDE_KINDS) else {2} if kind in NAMESPACED_KINDS else {1, 2}
    if not kind or not all(parts) or len(parts) not in wanted:
        shape = "KIND/NAME" if wanted == {1} else "KIND/NAMESPACE/NAME" if wanted == {2} else "KIND/[NAMESPACE/]NAME"
        raise ValueError(f"entity {text!r} is not of the form {shape}")
    return "/".join([kind, *parts])


def canonical_mechanism(text: str) -> str:
    """A mechanism in its one spelling; raises ValueError with the nearest valid word."""
    return _closed(text, MECHANISMS, "mechanism")


def canonical_verdict(text: str) -> str:
    """A verdict in its one spelling; raises ValueError with the nearest valid word."""
    return _closed(text, VERDICTS, "verdict")


def _closed(text: str, words: tuple[str, ...], what: str) -> str:
    word = "-".join(text.strip().lower().replace("_", " ").split())
    if word in words:
        return word
    near = get_close_matches(word, words, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; expected one of {', '.join(words)}"
    raise ValueError(f"unknown {what} {text!r}{hint}")
