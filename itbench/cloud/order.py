"""Where moto answers in the order of memory addresses, the account answers in that of identifiers: equal runs, equal answers.

Called by the account's process before its first EC2 call; moto's own objects are loaded only then. Measured against moto 5.2.
"""

from functools import cache
from typing import Any


@cache
def by_identifier() -> None:
    """Security groups of a network interface, which moto keeps in a set."""
    from moto.ec2.models import elastic_network_interfaces

    interface: Any = elastic_network_interfaces.NetworkInterface
    unordered = interface.group_set.fget
    interface.group_set = property(lambda each: sorted(unordered(each), key=lambda group: str(group.id)))
