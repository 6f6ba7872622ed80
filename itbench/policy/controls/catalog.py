"""The controls that we assess, and profiles of them. Ids are those of the CIS Kubernetes Benchmark 1.12; the words are ours."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from itbench.policy.controls import namespaces, pods, rbac
from itbench.policy.controls.model import Control, Manual, Severity
from itbench.policy.controls.pods import WORKLOADS, per_workload
from itbench.policy.controls.rbac import BINDINGS, ROLES, per_role

_MINIMAL = "list what is needed by name and verb, in a Role of one namespace where that is enough"


def _role(number: str, title: str, level: Severity, wrong: Callable[[rbac.Rule], bool], words: tuple[str, str, str],
          related: tuple[str, ...]) -> Control:  # fmt: skip
    expected, why, fix = words
    return Control(number, title, level, ROLES, per_role(wrong, expected), expected, why, fix, related)


_ACCESS = (
    Control(
        "5.1.1",
        "Nobody is cluster-admin who need not be",
        "high",
        BINDINGS,
        rbac.cluster_admins,
        "no binding to cluster-admin beyond the one of a fresh cluster; those needed are recorded as exceptions",
        "whoever gets hold of such an account owns every workload, Secret and node",
        "bind a role with the rights needed, or record the exception with its reason and end",
        ("NIST AC-6", "SOC2 CC6.3"),
    ),
    _role(
        "5.1.2",
        "Few may read Secrets",
        "high",
        rbac.reads_secrets,
        (
            "no rule reads Secrets beyond some that it names",
            "Secrets hold the credentials of everything else; listing them is the same as reading them",
            "name the Secrets (resourceNames) and drop list and watch without them",
        ),
        ("NIST AC-3",),
    ),
    _role(
        "5.1.3",
        "No wildcards in roles",
        "high",
        rbac.wildcard,
        (
            "every rule names groups, resources and verbs",
            "a star also grants what will be installed next year, and verbs such as escalate",
            _MINIMAL,
        ),
        ("NIST AC-6", "SOC2 CC6.3"),
    ),
    _role(
        "5.1.4",
        "Few may create pods",
        "medium",
        rbac.makes_pods,
        (
            "no rule creates pods or what makes pods; deployers that need it are recorded as exceptions",
            "a pod can mount every Secret and every account of its namespace",
            "deploy through one pipeline account per namespace",
        ),
        ("NIST AC-6(1)",),
    ),
    Control(
        "5.1.5",
        "The default service accounts have no token and no rights",
        "medium",
        ("serviceaccounts", *BINDINGS),
        rbac.default_accounts,
        "automountServiceAccountToken: false and no binding",
        "every pod that names no account gets what this one can do",
        "set automountServiceAccountToken: false on it and give workloads accounts of their own",
        ("NIST IA-5",),
        by_subject=False,
    ),
    Control(
        "5.1.6",
        "Tokens are mounted only where somebody decided so",
        "medium",
        ("serviceaccounts", *WORKLOADS),
        pods.token_mounts,
        "automountServiceAccountToken is set, on the pod or on its account",
        "a token in a container that never calls the API serves only who breaks into it",
        "set automountServiceAccountToken: false; true where the workload calls the API",
        ("NIST IA-5",),
        by_subject=False,
    ),
    _role(
        "5.1.8",
        "Few may bind, escalate or impersonate",
        "high",
        rbac.climbs,
        (
            "no rule has these verbs",
            "each of them is a way from few rights to all",
            "leave them to cluster administrators",
        ),
        ("NIST AC-6(1)",),
    ),
    _role(
        "5.1.10",
        "Few may use the proxy of nodes",
        "high",
        rbac.proxies_nodes,
        (
            "no rule reaches nodes/proxy",
            "it is a shell in every container, past admission control and audit log",
            "use nodes/metrics, nodes/stats or nodes/log instead",
        ),
        ("NIST AC-6",),
    ),
    _role(
        "5.1.12",
        "Few may change webhook configurations",
        "high",
        rbac.changes_webhooks,
        (
            "no rule writes them",
            "a webhook reads and changes every write to the cluster",
            "leave them to cluster administrators and to the controllers that own them",
        ),
        ("NIST AC-6(1)",),
    ),
    _role(
        "5.1.13",
        "Few may make tokens of service accounts",
        "high",
        rbac.makes_tokens,
        (
            "no rule creates serviceaccounts/token",
            "a token of a stronger account is that account",
            "let kubelets request tokens; remove the rule",
        ),
        ("NIST AC-6(1)",),
    ),
)


def _pod(number: str, title: str, level: Severity, faults: Callable[[pods.Spec], Iterator[str]],
         words: tuple[str, str, str], related: tuple[str, ...]) -> Control:  # fmt: skip
    expected, why, fix = words
    return Control(number, title, level, WORKLOADS, per_workload(faults, expected), expected, why, fix, related)


_REMOVE = "remove the field; where the workload needs it, give it a namespace of its own and record the exception"
_PODS = (
    _pod("5.2.2", "No privileged containers", "high", pods.privileged,
         ("no container is privileged", "such a container is root on its node", _REMOVE), ("NIST AC-6",)),
    _pod("5.2.3", "No pod sees the processes of its node", "high", pods.flag_of_pod("hostPID"),
         ("hostPID is not set", "environment and memory of every process of the node can be read, and it can be ended", _REMOVE),
         ("NIST AC-6",)),
    _pod("5.2.4", "No pod shares memory with its node", "high", pods.flag_of_pod("hostIPC"),
         ("hostIPC is not set", "shared memory and semaphores of other workloads can be read and written", _REMOVE),
         ("NIST AC-6",)),
    _pod("5.2.5", "No pod uses the network of its node", "high", pods.flag_of_pod("hostNetwork"),
         ("hostNetwork is not set", "loopback services of the node are open, network policies do not apply", _REMOVE),
         ("NIST SC-7", "NIST CM-7")),
    _pod("5.2.6", "No privilege escalation in containers", "medium", pods.escalation,
         ("allowPrivilegeEscalation: false on every container", "set-uid programs turn a foothold into root",
          "set allowPrivilegeEscalation: false"), ("NIST AC-6(10)",)),
    _pod("5.2.7", "No container runs as root", "medium", pods.root,
         ("runAsNonRoot: true or a runAsUser other than 0", "root in the container is one kernel fault away from the node",
          "set runAsNonRoot: true, and a user in the image"), ("NIST AC-6(10)",)),
    _pod("5.2.8", "No raw network access", "medium", pods.raw_network,
         ("NET_RAW is dropped", "packets can be forged: spoofed names and addresses inside the cluster",
          "drop ALL, or NET_RAW"), ("NIST CM-7",)),
    _pod("5.2.9", "No capabilities that are not needed", "medium", pods.capabilities,
         ("ALL dropped, nothing but NET_BIND_SERVICE added", "each capability is a part of root",
          "drop ALL and add by name what the program needs"), ("NIST CM-7",)),
    _pod("5.2.10", "No Windows containers on the node itself", "high", pods.host_process,
         ("hostProcess is not set", "such a container is an administrator of its node", _REMOVE), ("NIST AC-6",)),
    _pod("5.2.11", "No folders of the node in pods", "high", pods.host_paths,
         ("no hostPath volume", "the node's files, and through them the node, are open to the pod",
          "use emptyDir, a ConfigMap or a claim; a log agent's read-only mount is an exception to record"), ("NIST SC-4",)),
    _pod("5.2.12", "No ports of the node in pods", "medium", pods.host_ports,
         ("no hostPort", "the port is open past Services and network policies", "publish through a Service"),
         ("NIST SC-7",)),
)  # fmt: skip
_OTHER = (
    Control(
        "5.3.2",
        "Every namespace with workloads has a network policy",
        "medium",
        ("namespaces", namespaces.POLICIES, *WORKLOADS),
        namespaces.network_policies,
        "at least one NetworkPolicy",
        "without one every pod talks to every pod",
        "add a policy that denies by default, then allow what is needed, DNS included",
        ("NIST SC-7", "NIST AC-4", "PCI 1.3"),
        by_subject=False,
    ),
    _pod("5.4.1", "Secrets as files, not in the environment", "low", pods.secrets_in_environment,
         ("no env or envFrom from a Secret", "environments are inherited, logged and dumped",
          "mount the Secret and let the program read the file"), ("NIST IA-5(7)",)),
    _pod("5.6.2", "System calls are filtered", "medium", pods.seccomp,
         ("seccompProfile RuntimeDefault or Localhost", "rare system calls are where kernels are broken",
          "set securityContext.seccompProfile.type: RuntimeDefault"), ("NIST CM-6",)),
    Control(
        "5.6.4",
        "Nothing lives in the namespace default",
        "low",
        ("namespaces", *namespaces.MOVABLE),
        namespaces.default_namespace,
        "only what Kubernetes keeps there itself",
        "roles, quotas and policies are set per namespace; default has none that fit",
        "move the workloads to a namespace of their own",
        ("NIST CM-6",),
        by_subject=False,
    ),
)  # fmt: skip
CONTROLS: tuple[Control, ...] = (*_ACCESS, *_PODS, *_OTHER)
MANUAL = (
    Manual(
        "5.1.7", "No use of the group system:masters", "certificates of the cluster's authority with that organization"
    ),
    Manual(
        "5.2.1", "Pod security is enforced", "what judges pods at admission, in which namespaces, with which exemptions"
    ),
    Manual("5.3.1", "The network supports policies", "name and configuration of the network plug-in"),
    Manual("5.4.2", "Secrets outside the cluster", "where credentials are kept and how they reach workloads"),
    Manual("5.5.1", "Where images come from is checked", "the admission rule for registries and signatures"),
    Manual("5.6.1", "Namespaces are boundaries", "which team or tenant owns which namespace"),
    Manual("5.6.3", "Security contexts are set", "who reviews them for new workloads"),
)


@dataclass(frozen=True)
class Profile:
    """A pinned list of controls."""

    name: str
    version: str
    title: str
    framework: str
    controls: tuple[Control, ...]
    manual: tuple[Manual, ...] = ()

    @property
    def key(self) -> str:
        """`cis-k8s@1.12`."""
        return f"{self.name}@{self.version}"

    @property
    def resources(self) -> tuple[str, ...]:
        """Everything that has to be listed, sorted."""
        return tuple(sorted({resource for control in self.controls for resource in control.resources}))


PROFILES: dict[str, Profile] = {
    "cis-k8s": Profile(
        "cis-k8s", "1.12", "CIS Kubernetes Benchmark, section 5, as far as the API answers", "cis-k8s", CONTROLS, MANUAL
    )
}


def control(number: str) -> Control:
    """A control by its id; KeyError for one we do not assess."""
    return {each.id: each for each in CONTROLS}[number]
