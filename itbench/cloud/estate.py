"""The estate of an AWS account as people write it: `playbooks/estates/<id>/estate.yaml`, and what the seed draws from it.

Called by the seeding (`itbench.cloud.seed`), by the driver of account trials (what is waste, what must stay) and by their tests.
Every entry may say in which variants of the estate it exists (`in: [row]`); a row and its twin are two variants of one file.
"""

from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, field_validator

from itbench.cloud.anomalies import BillSpec
from itbench.core.documents.base import Document, Duration, load
from itbench.core.ids import Ids

Role = Literal["keep", "waste"]
N = TypeVar("N", bound="Named")


class Named(Document):
    """Anything with a name that other entries and scenario steps (`{target.NAME}`) refer to."""

    name: str
    in_: tuple[str, ...] = Field((), alias="in")
    """Variants of the estate that have this entry; empty: all."""
    region: str = "us-east-1"
    tags: dict[str, str] = Field(default_factory=dict)
    age: Duration = 30 * 86400.0
    """World seconds before hand-over at which it was made."""


class Vpc(Named):
    """A network, IPv6 optional."""

    cidr: str = "10.0.0.0/16"
    ipv6: bool = False


class Subnet(Named):
    """A subnet of a VPC."""

    vpc: str
    cidr: str
    zone: str = "a"


class PrefixList(Named):
    """A managed prefix list of the customer."""

    family: Literal["IPv4", "IPv6"] = "IPv4"
    entries: tuple[str, ...]
    max_entries: int = 20


class Rule(Document):
    """One permission; `protocol: -1` is all traffic. Sources of all kinds in one list.

    A source is a CIDR of either family, `pl:NAME` (prefix list) or `sg:NAME` (group).
    """

    protocol: str = "tcp"
    ports: int | tuple[int, int] | None = None
    sources: tuple[str, ...]
    about: str = ""

    @field_validator("protocol", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        return str(value)


class Group(Named):
    """A security group; `egress: None` keeps what AWS gives a new group (everything out)."""

    vpc: str
    about: str = "managed by terraform"
    ingress: tuple[Rule, ...] = ()
    egress: tuple[Rule, ...] | None = None


class Instance(Named):
    """An instance; `volumes` are attached to it in this order."""

    subnet: str
    groups: tuple[str, ...] = ()
    type: str = "m5.large"
    state: Literal["running", "stopped"] = "running"
    volumes: tuple[str, ...] = ()


class Interface(Named):
    """A network interface that belongs to no instance of the estate (endpoints, appliances)."""

    subnet: str
    groups: tuple[str, ...] = ()
    about: str = ""


class Balancer(Named):
    """A load balancer."""

    kind: Literal["application", "network"] = "application"
    scheme: Literal["internal", "internet-facing"] = "internal"
    subnets: tuple[str, ...]
    groups: tuple[str, ...] = ()


class Volume(Named):
    """An EBS volume. Sizes in GB, drawn from the seed when a range is given.

    `role: waste`: a perfect agent deletes it; `snapshot`: it must be saved first. `detached`: world seconds before hand-over at
    which it was detached from an instance that is gone (`detached_from` names it in the estate; its identifier is made up).
    `needed_at`: hour of the hidden future in which somebody attaches it again.
    """

    size: int | tuple[int, int]
    type: Literal["gp2", "gp3", "io1", "io2", "st1", "sc1", "standard"] = "gp3"
    iops: int | None = None
    throughput: int | None = None
    zone: str = "a"
    detached: Duration | None = None
    detached_from: str = ""
    role: Role = "keep"
    snapshot: bool = True
    needed_at: float | None = None
    why: str = ""


class Snapshot(Named):
    """A snapshot of a volume of the estate, taken `age` ago."""

    volume: str
    about: str = ""


class Estate(Document):
    """`playbooks/estates/<id>/estate.yaml`."""

    schema_: Literal["itbench/estate/v1"] = Field(alias="schema")
    id: str
    about: str
    horizon_h: int = 720
    """Hours of hidden future over which the account is rated after the trial."""
    vpcs: tuple[Vpc, ...] = ()
    subnets: tuple[Subnet, ...] = ()
    prefix_lists: tuple[PrefixList, ...] = ()
    groups: tuple[Group, ...] = ()
    volumes: tuple[Volume, ...] = ()
    instances: tuple[Instance, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    balancers: tuple[Balancer, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    bill: BillSpec | None = None
    """A bill of many months and applications (rows about data); without it the bill is that of the account's resources."""

    @property
    def account(self) -> bool:
        """Whether there is an account, or only its bill."""
        return any((self.vpcs, self.volumes, self.instances, self.groups))

    def named(self) -> list[Named]:
        """All entries that have a name."""
        lists: tuple[tuple[Named, ...], ...] = (
            self.vpcs,
            self.subnets,
            self.prefix_lists,
            self.groups,
            self.volumes,
            self.instances,
            self.interfaces,
            self.balancers,
            self.snapshots,
        )
        return list(chain.from_iterable(lists))


def _only(entries: tuple[N, ...], variant: str) -> tuple[N, ...]:
    return tuple(entry for entry in entries if not entry.in_ or variant in entry.in_)


def _drawn(volume: Volume, ids: Ids) -> Volume:
    if isinstance(volume.size, int):
        return volume
    low, high = volume.size
    return volume.model_copy(update={"size": ids.rng("volume", volume.name).randint(low, high)})


def drawn(estate: Estate, *, seed: int, variant: str = "row") -> Estate:
    """The estate of one seed and variant: entries of other variants left out, ranges replaced by numbers.

    Args:
        estate: as read.
        seed: of the trial.
        variant: `row` or `twin`.
    """
    ids = Ids(seed)
    lists = ("vpcs", "subnets", "prefix_lists", "groups", "instances", "interfaces", "balancers", "snapshots")
    kept: dict[str, Any] = {name: _only(getattr(estate, name), variant) for name in lists}
    kept["volumes"] = tuple(_drawn(volume, ids) for volume in _only(estate.volumes, variant))
    there = {volume.name for volume in kept["volumes"]}
    kept["instances"] = tuple(
        instance.model_copy(update={"volumes": tuple(name for name in instance.volumes if name in there)})
        for instance in kept["instances"]
    )
    return estate.model_copy(update=kept)


def read_estate(folder: Path, *, seed: int, variant: str = "row") -> Estate:
    """Load `folder/estate.yaml` and draw it; raises DocumentError as `core.documents.base.load` does."""
    return drawn(load(Estate, folder / "estate.yaml"), seed=seed, variant=variant)
