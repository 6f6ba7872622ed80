"""What AWS refuses and moto accepts: one table, used by the account's process before it asks moto.

Each entry looks at moto's own state. Sources: AWS API reference of EC2 (error codes, November 2026);
measured against moto 5.2.
"""

from collections.abc import Callable
from typing import Any

Refusal = tuple[str, str]
"""Error code and message."""
Params = dict[str, str]
SIZES_GIB = {
    "gp2": (1, 16_384),
    "gp3": (1, 65_536),
    "io1": (4, 16_384),
    "io2": (4, 65_536),
    "st1": (125, 16_384),
    "sc1": (125, 16_384),
    "standard": (1, 1_024),
}
"""Volume type -> smallest and largest size."""
GP3_MAX_IOPS = 80_000
"""Since September 2025."""


def _ec2(region: str) -> Any:
    from moto.backends import get_backend

    from itbench.cloud.child import ACCOUNT

    return get_backend("ec2")[ACCOUNT][region]


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _out_of_bounds(what: str, text: str | None, least: int, most: int, unit: str = "") -> Refusal | None:
    """Why a number that was given is refused; moto takes any."""
    if text is None:
        return None
    number = _number(text)
    if number is None:
        return "InvalidParameterValue", f"Value ({text}) for parameter {what} is invalid. Expected an integer."
    if number < least:
        return "InvalidParameterValue", f"Volume {what} of {number}{unit} is too small; minimum is {least}{unit}."
    if number > most:
        return "InvalidParameterValue", f"Volume {what} of {number}{unit} is too large; maximum is {most}{unit}."
    return None


def _volume_bounds(kind: str, size: str | None, iops: str | None, throughput: str | None) -> Refusal | None:
    least, most = SIZES_GIB.get(kind, SIZES_GIB["gp3"])
    return (
        _out_of_bounds("size", size, least, most, "GiB")
        or _out_of_bounds("iops", iops, 100, 256_000)
        or _out_of_bounds("throughput", throughput, 125, 2_000)
    )


def _create_volume(params: Params, region: str) -> Refusal | None:
    kind = params.get("VolumeType", "gp2")
    return _volume_bounds(kind, params.get("Size"), params.get("Iops"), params.get("Throughput"))


def _run_instances(params: Params, region: str) -> Refusal | None:
    for name, size in params.items():
        if name.startswith("BlockDeviceMapping.") and name.endswith(".Ebs.VolumeSize"):
            head = name.removesuffix("VolumeSize")
            kind = params.get(f"{head}VolumeType", "gp2")
            refused = _volume_bounds(kind, size, params.get(f"{head}Iops"), params.get(f"{head}Throughput"))
            if refused is not None:
                return refused
    return None


def _modify_volume(params: Params, region: str) -> Refusal | None:
    volume = _ec2(region).volumes.get(params.get("VolumeId", ""))
    if volume is None:
        return None
    bounds = _volume_bounds(
        params.get("VolumeType", volume.volume_type), params.get("Size"), params.get("Iops"), params.get("Throughput")
    )
    if bounds is not None:
        return bounds
    size = int(params.get("Size", volume.size))
    if size < int(volume.size):
        return "InvalidParameterValue", f"New size cannot be smaller than existing size ({volume.size} GiB)"
    kind = params.get("VolumeType", volume.volume_type)
    if kind == "gp3" and int(params.get("Iops", 0)) > GP3_MAX_IOPS:
        return "InvalidParameterCombination", f"Volume iops of {params['Iops']} is too high; maximum is {GP3_MAX_IOPS}."
    return None


def _modify_instance(params: Params, region: str) -> Refusal | None:
    if "InstanceType.Value" not in params and params.get("Attribute") != "instanceType":
        return None
    for reservation in _ec2(region).reservations.values():
        for instance in reservation.instances:
            if instance.id == params.get("InstanceId") and instance.state != "stopped":
                return "IncorrectInstanceState", f"The instance '{instance.id}' is not in the 'stopped' state."
    return None


def _delete_snapshot(params: Params, region: str) -> Refusal | None:
    wanted = params.get("SnapshotId", "")
    for image in _ec2(region).amis.values():
        if getattr(image, "ebs_snapshot", None) is not None and image.ebs_snapshot.id == wanted:
            return "InvalidSnapshot.InUse", f"The snapshot {wanted} is currently in use by {image.id}"
    return None


def _release_address(params: Params, region: str) -> Refusal | None:
    for address in _ec2(region).addresses.values():
        known = (address.allocation_id, address.public_ip)
        if params.get("AllocationId", params.get("PublicIp")) in known and address.association_id:
            return "InvalidIPAddress.InUse", f"Address {address.public_ip} is in use."
    return None


SHIMS: dict[tuple[str, str], Callable[[Params, str], Refusal | None]] = {
    ("ec2", "CreateVolume"): _create_volume,
    ("ec2", "RunInstances"): _run_instances,
    ("ec2", "ModifyVolume"): _modify_volume,
    ("ec2", "ModifyInstanceAttribute"): _modify_instance,
    ("ec2", "DeleteSnapshot"): _delete_snapshot,
    ("ec2", "ReleaseAddress"): _release_address,
}


def refusal(service: str, action: str, params: Params, region: str) -> Refusal | None:
    """Why AWS would refuse this call although moto does not; None when moto may answer."""
    shim = SHIMS.get((service, action))
    return shim(params, region) if shim is not None else None
