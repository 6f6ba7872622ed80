"""The server's internal structures of pod and claim specs, as Go prints them: names and order of fields, what empty ones are.

Refusals of updates show differences of these structures. Called by `diff`. Read off differences that a real server printed.

A field is a name with a mark: `=` text, `0` number, `!` truth value (never null); `.T` a structure that is always there, `:T` one
that may be null, `*T` a list of them; without a mark a value that may be null.
"""

from typing import Any

_CONTAINER = (
    "Name= Image= Command Args WorkingDir= Ports*Port EnvFrom*EnvFrom Env*Env Resources.Resources ResizePolicy*ResizePolicy "
    "RestartPolicy RestartPolicyRules*RestartRule VolumeMounts*Mount VolumeDevices*Device LivenessProbe:Probe "
    "ReadinessProbe:Probe StartupProbe:Probe Lifecycle:Lifecycle TerminationMessagePath= TerminationMessagePolicy= "
    "ImagePullPolicy= SecurityContext:Security Stdin! StdinOnce! TTY!"
)
_TABLE = {
    "PodSpec": "Volumes*Volume InitContainers*Container Containers*Container EphemeralContainers*EphemeralContainer "
    "RestartPolicy= TerminationGracePeriodSeconds ActiveDeadlineSeconds DNSPolicy= NodeSelector ServiceAccountName= "
    "AutomountServiceAccountToken NodeName= SecurityContext:PodSecurity ImagePullSecrets*Reference Hostname= Subdomain= "
    "SetHostnameAsFQDN Affinity:Affinity SchedulerName= Tolerations*Toleration HostAliases*HostAlias PriorityClassName= "
    "Priority PreemptionPolicy DNSConfig:DNSConfig ReadinessGates*ReadinessGate RuntimeClassName Overhead "
    "EnableServiceLinks TopologySpreadConstraints*Spread OS:OS SchedulingGates*Reference ResourceClaims*ResourceClaim "
    "Resources:Resources HostnameOverride",
    "Container": _CONTAINER,
    "EphemeralContainer": f"{_CONTAINER} TargetContainerName=",
    "Reference": "Name=",
    "OS": "Name=",
    "ReadinessGate": "ConditionType=",
    "ResourceClaim": "Name= ResourceClaimName ResourceClaimTemplateName",
    "HostAlias": "IP= Hostnames",
    "Toleration": "Key= Operator= Value= Effect= TolerationSeconds",
    "DNSConfig": "Nameservers Searches Options*Option",
    "Option": "Name= Value",
    "Spread": "MaxSkew0 TopologyKey= WhenUnsatisfiable= LabelSelector:LabelSelector MinDomains NodeAffinityPolicy "
    "NodeTaintsPolicy MatchLabelKeys",
    "Port": "Name= HostPort0 ContainerPort0 Protocol= HostIP=",
    "EnvFrom": "Prefix= ConfigMapRef:Optional SecretRef:Optional",
    "Optional": "Name= Optional",
    "Env": "Name= Value= ValueFrom:ValueFrom",
    "ValueFrom": "FieldRef:FieldRef ResourceFieldRef:ResourceFieldRef ConfigMapKeyRef:KeyRef SecretKeyRef:KeyRef FileKeyRef",
    "FieldRef": "APIVersion= FieldPath=",
    "ResourceFieldRef": "ContainerName= Resource= Divisor=",
    "KeyRef": "Name= Key= Optional",
    "Resources": "Limits Requests Claims*Claim",
    "Claim": "Name= Request=",
    "ResizePolicy": "ResourceName= RestartPolicy=",
    "RestartRule": "Action= ExitCodes",
    "Mount": "Name= ReadOnly! RecursiveReadOnly MountPath= SubPath= MountPropagation SubPathExpr=",
    "Device": "Name= DevicePath=",
    "Probe": "Exec:Exec HTTPGet:HTTPGet TCPSocket:TCPSocket GRPC:GRPC InitialDelaySeconds0 TimeoutSeconds0 PeriodSeconds0 "
    "SuccessThreshold0 FailureThreshold0 TerminationGracePeriodSeconds",
    "Exec": "Command",
    "HTTPGet": "Path= Port Host= Scheme= HTTPHeaders*Header",
    "Header": "Name= Value=",
    "TCPSocket": "Port Host=",
    "GRPC": "Port0 Service",
    "Lifecycle": "PostStart:Hook PreStop:Hook StopSignal",
    "Hook": "Exec:Exec HTTPGet:HTTPGet TCPSocket:TCPSocket Sleep:Sleep",
    "Sleep": "Seconds0",
    "Security": "Capabilities:Capabilities Privileged SELinuxOptions:SELinux WindowsOptions:Windows RunAsUser RunAsGroup "
    "RunAsNonRoot ReadOnlyRootFilesystem AllowPrivilegeEscalation ProcMount SeccompProfile:Profile AppArmorProfile:Profile",
    "Capabilities": "Add Drop",
    "SELinux": "User= Role= Type= Level=",
    "Windows": "GMSACredentialSpecName GMSACredentialSpec RunAsUserName HostProcess",
    "Profile": "Type= LocalhostProfile",
    "PodSecurity": "HostNetwork! HostPID! HostIPC! ShareProcessNamespace HostUsers SELinuxOptions:SELinux "
    "WindowsOptions:Windows RunAsUser RunAsGroup RunAsNonRoot SupplementalGroups SupplementalGroupsPolicy FSGroup "
    "FSGroupChangePolicy Sysctls*Header SeccompProfile:Profile AppArmorProfile:Profile SELinuxChangePolicy",
    "Affinity": "NodeAffinity:NodeAffinity PodAffinity:PodAffinity PodAntiAffinity:PodAffinity",
    "NodeAffinity": "RequiredDuringSchedulingIgnoredDuringExecution:NodeSelector "
    "PreferredDuringSchedulingIgnoredDuringExecution*NodePreference",
    "NodeSelector": "NodeSelectorTerms*NodeTerm",
    "NodeTerm": "MatchExpressions*NodeRequirement MatchFields*NodeRequirement",
    "NodeRequirement": "Key= Operator= Values",
    "NodePreference": "Weight0 Preference.NodeTerm",
    "PodAffinity": "RequiredDuringSchedulingIgnoredDuringExecution*PodTerm "
    "PreferredDuringSchedulingIgnoredDuringExecution*PodPreference",
    "PodTerm": "LabelSelector:LabelSelector Namespaces TopologyKey= NamespaceSelector:LabelSelector MatchLabelKeys "
    "MismatchLabelKeys",
    "PodPreference": "Weight0 PodAffinityTerm.PodTerm",
    "Volume": "Name= HostPath:HostPath EmptyDir:EmptyDir GCEPersistentDisk AWSElasticBlockStore GitRepo Secret:SecretVolume "
    "NFS:NFS ISCSI Glusterfs PersistentVolumeClaim:ClaimVolume RBD Quobyte FlexVolume Cinder CephFS Flocker "
    "DownwardAPI:DownwardAPI FC AzureFile ConfigMap:ConfigMapVolume VsphereVolume AzureDisk PhotonPersistentDisk "
    "Projected:Projected PortworxVolume ScaleIO StorageOS CSI:CSI Ephemeral:Ephemeral Image:ImageVolume",
    "HostPath": "Path= Type",
    "EmptyDir": "Medium= SizeLimit",
    "SecretVolume": "SecretName= Items*Item DefaultMode Optional",
    "ConfigMapVolume": "Name= Items*Item DefaultMode Optional",
    "Item": "Key= Path= Mode",
    "NFS": "Server= Path= ReadOnly!",
    "ClaimVolume": "ClaimName= ReadOnly!",
    "DownwardAPI": "Items*DownwardItem DefaultMode",
    "DownwardItem": "Path= FieldRef:FieldRef ResourceFieldRef:ResourceFieldRef Mode",
    "Projected": "Sources*Source DefaultMode",
    "Source": "Secret:SourceItems DownwardAPI:SourceDownward ConfigMap:SourceItems ServiceAccountToken:TokenSource "
    "ClusterTrustBundle PodCertificate",
    "SourceItems": "Name= Items*Item Optional",
    "SourceDownward": "Items*DownwardItem",
    "TokenSource": "Audience= ExpirationSeconds0 Path=",
    "CSI": "Driver= ReadOnly FSType VolumeAttributes NodePublishSecretRef:Reference",
    "Ephemeral": "VolumeClaimTemplate",
    "ImageVolume": "Reference= PullPolicy=",
    "PersistentVolumeClaimSpec": "AccessModes Selector:LabelSelector Resources.VolumeResources VolumeName= StorageClassName "
    "VolumeMode DataSource:LocalReference DataSourceRef:TypedReference VolumeAttributesClassName",
    "VolumeResources": "Limits Requests",
    "LocalReference": "APIGroup Kind= Name=",
    "TypedReference": "APIGroup Kind= Name= Namespace",
}
_ZERO: dict[str, Any] = {"=": "", "0": 0, "!": False, "": None}
_OF_SECURITY = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""Fields of a pod spec that the internal structure keeps in its security context."""


def pod_spec(spec: dict[str, Any]) -> Any:
    """A pod spec as the internal structure is printed."""
    security = {**(spec.get("securityContext") or {}), **{key: spec[key] for key in _OF_SECURITY if key in spec}}
    return structure({**spec, "securityContext": security}, "PodSpec")


def structure(value: Any, kind: str) -> Any:
    """A value as the internal structure `kind` is printed; null stays null."""
    if value is None:
        return None
    if kind == "LabelSelector":
        return {key: _plain(value[key]) for key in ("matchLabels", "matchExpressions") if key in value}
    given = {key.lower(): item for key, item in value.items()}
    out: dict[str, Any] = {}
    for field in _TABLE[kind].split():
        name, mark, inner = _split(field)
        item = given.get(name.lower())
        if mark == "*":
            out[name] = None if item is None else [structure(row, inner) for row in item]
        elif mark in (".", ":"):
            out[name] = structure({} if item is None and mark == "." else item, inner)
        else:
            out[name] = _ZERO[mark] if item is None else _plain(item)
    return out


def _split(field: str) -> tuple[str, str, str]:
    """`Ports*Port` -> Ports, *, Port; `Name=` -> Name, =, nothing."""
    for mark in (".", ":", "*"):
        if mark in field:
            name, _, inner = field.partition(mark)
            return name, mark, inner
    return (field[:-1], field[-1], "") if field[-1] in "=0!" else (field, "", "")


def _plain(value: Any) -> Any:
    """Maps are printed with sorted keys."""
    if isinstance(value, dict):
        return {key: _plain(value[key]) for key in sorted(value)}
    return [_plain(row) for row in value] if isinstance(value, list) else value
