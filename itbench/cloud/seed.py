"""Makes the resources of an estate in an account, by ordinary API calls, each at the moment at which it was made.

Called by the Ansible module `itbench_estate`. Returns the identifier of every named resource; names that AWS makes itself on the
way (root volumes, network interfaces of instances) are there as `NAME/root` and `NAME/eni`.
"""

from collections.abc import Iterable
from typing import Any

from itbench.cloud.client import Clients
from itbench.cloud.estate import (
    Balancer,
    Estate,
    Group,
    Instance,
    Interface,
    Named,
    PrefixList,
    Rule,
    Snapshot,
    Subnet,
    Volume,
    Vpc,
)

DEVICES = "fghijklmnop"


def tags(named: Named, kind: str = "") -> list[dict[str, Any]]:
    """The tags of an entry as a list, or as TagSpecifications of a kind."""
    pairs = [{"Key": key, "Value": value} for key, value in named.tags.items()]
    if not kind:
        return pairs
    return [{"ResourceType": kind, "Tags": pairs}] if pairs else []


class Seeder:
    """One estate on its way into an account.

    Args:
        clients: with the stager's keys.
        now: Unix seconds of hand-over; ages count back from here.
    """

    def __init__(self, clients: Clients, now: float) -> None:
        self.clients, self.now = clients, now
        self.names: dict[str, str] = {}

    def seed(self, estate: Estate) -> dict[str, str]:
        """Make everything, in an order in which references exist."""
        self._each(estate.vpcs, self._vpc)
        self._each(estate.subnets, self._subnet)
        self._each(estate.prefix_lists, self._prefix_list)
        self._each(estate.groups, self._group)
        for group in estate.groups:
            self._rules(group)
        self._each(estate.volumes, self._volume)
        if estate.instances:
            self._images(estate)
        self._each(estate.instances, self._instance)
        self._each(estate.interfaces, self._interface)
        self._each(estate.balancers, self._balancer)
        self._each(estate.snapshots, self._snapshot)
        self.clients.moment = None
        return self.names

    def _each(self, entries: Iterable[Any], make: Any) -> None:
        for entry in entries:
            self.clients.moment = self.now - entry.age
            self.names[entry.name] = make(entry)

    def _id(self, name: str) -> str:
        if name not in self.names:
            raise KeyError(f"the estate refers to {name!r}, which is not in it")
        return self.names[name]

    def _ec2(self, named: Named) -> Any:
        return self.clients.get("ec2", named.region)

    def _vpc(self, vpc: Vpc) -> str:
        made = self._ec2(vpc).create_vpc(
            CidrBlock=vpc.cidr, AmazonProvidedIpv6CidrBlock=vpc.ipv6, TagSpecifications=tags(vpc, "vpc")
        )
        return str(made["Vpc"]["VpcId"])

    def _subnet(self, subnet: Subnet) -> str:
        made = self._ec2(subnet).create_subnet(
            VpcId=self._id(subnet.vpc),
            CidrBlock=subnet.cidr,
            AvailabilityZone=subnet.region + subnet.zone,
            TagSpecifications=tags(subnet, "subnet"),
        )
        return str(made["Subnet"]["SubnetId"])

    def _prefix_list(self, entry: PrefixList) -> str:
        made = self._ec2(entry).create_managed_prefix_list(
            PrefixListName=entry.name,
            MaxEntries=entry.max_entries,
            AddressFamily=entry.family,
            Entries=[{"Cidr": cidr} for cidr in entry.entries],
            TagSpecifications=tags(entry, "prefix-list"),
        )
        return str(made["PrefixList"]["PrefixListId"])

    def _group(self, group: Group) -> str:
        made = self._ec2(group).create_security_group(
            GroupName=group.name,
            Description=group.about,
            VpcId=self._id(group.vpc),
            TagSpecifications=tags(group, "security-group"),
        )
        return str(made["GroupId"])

    def _rules(self, group: Group) -> None:
        ec2, identity = self._ec2(group), self._id(group.name)
        self.clients.moment = self.now - group.age
        if group.ingress:
            ec2.authorize_security_group_ingress(
                GroupId=identity, IpPermissions=[self.permission(rule) for rule in group.ingress]
            )
        if group.egress is None:
            return
        made = ec2.describe_security_groups(GroupIds=[identity])["SecurityGroups"][0]["IpPermissionsEgress"]
        ec2.revoke_security_group_egress(GroupId=identity, IpPermissions=made)
        if group.egress:
            ec2.authorize_security_group_egress(
                GroupId=identity, IpPermissions=[self.permission(rule) for rule in group.egress]
            )

    def permission(self, rule: Rule) -> dict[str, Any]:
        """A rule as an IpPermission."""
        found: dict[str, Any] = {"IpProtocol": rule.protocol}
        if rule.ports is not None:
            first, last = rule.ports if isinstance(rule.ports, tuple) else (rule.ports, rule.ports)
            found |= {"FromPort": first, "ToPort": last}
        about = {"Description": rule.about} if rule.about else {}
        for source in rule.sources:
            if source.startswith("sg:"):
                found.setdefault("UserIdGroupPairs", []).append({"GroupId": self._id(source[3:])} | about)
            elif source.startswith("pl:"):
                found.setdefault("PrefixListIds", []).append({"PrefixListId": self._id(source[3:])} | about)
            elif ":" in source:
                found.setdefault("Ipv6Ranges", []).append({"CidrIpv6": source} | about)
            else:
                found.setdefault("IpRanges", []).append({"CidrIp": source} | about)
        return found

    def _volume(self, volume: Volume) -> str:
        more = {"Iops": volume.iops, "Throughput": volume.throughput}
        made = self._ec2(volume).create_volume(
            AvailabilityZone=volume.region + volume.zone,
            Size=volume.size,
            VolumeType=volume.type,
            TagSpecifications=tags(volume, "volume"),
            **{key: value for key, value in more.items() if value is not None},
        )
        return str(made["VolumeId"])

    def _images(self, estate: Estate) -> None:
        """One image in every region with instances, older than all of them."""
        self.clients.moment = self.now - max(instance.age for instance in estate.instances) - 86400.0
        for region in sorted({instance.region for instance in estate.instances}):
            made = self.clients.get("ec2", region).register_image(
                Name="base-al2023-2025.11", Architecture="x86_64", RootDeviceName="/dev/xvda"
            )
            self.names[f"image/{region}"] = made["ImageId"]

    def _instance(self, instance: Instance) -> str:
        ec2 = self._ec2(instance)
        made = ec2.run_instances(
            ImageId=self.names[f"image/{instance.region}"],
            InstanceType=instance.type,
            MinCount=1,
            MaxCount=1,
            SubnetId=self._id(instance.subnet),
            ClientToken=f"terraform-{instance.name}",
            TagSpecifications=tags(instance, "instance"),
            **({"SecurityGroupIds": [self._id(name) for name in instance.groups]} if instance.groups else {}),
        )["Instances"][0]
        identity = str(made["InstanceId"])
        self.names[f"{instance.name}/eni"] = made["NetworkInterfaces"][0]["NetworkInterfaceId"]
        if made.get("BlockDeviceMappings"):
            self.names[f"{instance.name}/root"] = made["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]
        for letter, volume in zip(DEVICES, instance.volumes, strict=False):
            ec2.attach_volume(VolumeId=self._id(volume), InstanceId=identity, Device=f"/dev/sd{letter}")
        if instance.state == "stopped":
            ec2.stop_instances(InstanceIds=[identity])
        return identity

    def _interface(self, interface: Interface) -> str:
        made = self._ec2(interface).create_network_interface(
            SubnetId=self._id(interface.subnet),
            Groups=[self._id(name) for name in interface.groups],
            Description=interface.about,
            TagSpecifications=tags(interface, "network-interface"),
        )
        return str(made["NetworkInterface"]["NetworkInterfaceId"])

    def _balancer(self, balancer: Balancer) -> str:
        groups = {"SecurityGroups": [self._id(name) for name in balancer.groups]} if balancer.groups else {}
        made = self.clients.get("elbv2", balancer.region).create_load_balancer(
            Name=balancer.name,
            Subnets=[self._id(name) for name in balancer.subnets],
            Scheme=balancer.scheme,
            Type=balancer.kind,
            **groups,
        )
        return str(made["LoadBalancers"][0]["LoadBalancerArn"])

    def _snapshot(self, snapshot: Snapshot) -> str:
        made = self._ec2(snapshot).create_snapshot(
            VolumeId=self._id(snapshot.volume),
            Description=snapshot.about,
            TagSpecifications=tags(snapshot, "snapshot"),
        )
        return str(made["SnapshotId"])
