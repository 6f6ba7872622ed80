"""The front of an account, with unmodified boto3: identities, refusals, gaps, audit log, journal, inventory."""

import http.client

import pytest
from botocore.exceptions import ClientError

from itbench.cloud.access import Identity
from itbench.cloud.client import Clients
from itbench.cloud.estate import Estate, drawn
from itbench.cloud.front import Front
from itbench.cloud.inventory import collect
from itbench.cloud.process import AccountProcess
from itbench.cloud.seed import Seeder
from itbench.core.clock import unix
from itbench.policy.reachability import exposures, reaches

NOW = 6_742_800.0
STAGER = Identity("stager", "admin", "AKIASTAGER", "a")
ONCALL = Identity("oncall", "operator", "AKIAONCALL", "b")
READER = Identity("reader", "read-only", "AKIAREADER", "c")

ESTATE = {
    "schema": "itbench/estate/v1",
    "id": "test",
    "about": "one of everything",
    "vpcs": [{"name": "main", "ipv6": True, "cidr": "10.0.0.0/16"}],
    "subnets": [
        {"name": "a", "vpc": "main", "cidr": "10.0.1.0/24"},
        {"name": "b", "vpc": "main", "cidr": "10.0.2.0/24", "zone": "b"},
    ],
    "prefix_lists": [{"name": "halves", "entries": ["0.0.0.0/1", "128.0.0.0/1"]}],
    "groups": [
        {"name": "web", "vpc": "main", "ingress": [{"ports": 443, "sources": ["0.0.0.0/0", "::/0"]}]},
        {
            "name": "db",
            "vpc": "main",
            "egress": [],
            "ingress": [
                {"protocol": -1, "sources": ["sg:web"]},
                {"ports": [20, 30], "sources": ["pl:halves", "10.0.0.0/8"]},
            ],
        },
        *({"name": f"extra-{index}", "vpc": "main"} for index in range(4)),
    ],
    "volumes": [
        {"name": "data", "size": 100, "tags": {"team": "shop"}},
        {"name": "left", "size": [10, 90], "type": "gp2", "age": "200d", "detached": "20d", "role": "waste"},
    ],
    "instances": [
        {"name": "web-1", "subnet": "a", "groups": ["web"], "volumes": ["data"]},
        {"name": "old", "subnet": "b", "groups": ["db"], "state": "stopped"},
        {"name": "grouped", "subnet": "b", "groups": [f"extra-{index}" for index in range(4)]},
    ],
    "interfaces": [{"name": "endpoint", "subnet": "a", "groups": ["db"]}],
    "balancers": [{"name": "front", "subnets": ["a", "b"], "groups": ["web"], "scheme": "internet-facing"}],
    "snapshots": [{"name": "early", "volume": "left", "age": "150d"}],
}


@pytest.fixture(scope="module")
def names(stand):
    """The estate in the account; from then on the audit log is kept."""
    estate = drawn(Estate.model_validate(ESTATE), seed=1)
    made = Seeder(stand.clients(STAGER), unix(NOW)).seed(estate)
    stand.front.staging = False
    return made


def code(call, **params):
    with pytest.raises(ClientError) as error:
        call(**params)
    return error.value.response["Error"]["Code"]


def test_the_inventory_has_everything_of_the_estate_with_its_dates(stand, names):
    inventory = collect(stand.clients(STAGER), ("us-east-1",))
    left = next(volume for volume in inventory["Volumes"] if volume["VolumeId"] == names["left"])
    assert (left["CreateTime"], left["State"], left["VolumeType"]) == ("2025-09-12T09:00:00Z", "available", "gp2")
    assert 10 <= left["Size"] <= 90
    states = {item["InstanceId"]: item["State"]["Name"] for item in inventory["Instances"]}
    assert (states[names["web-1"]], states[names["old"]]) == ("running", "stopped")
    assert [item["LoadBalancerArn"] for item in inventory["LoadBalancers"]] == [names["front"]]
    assert [item["Entries"] for item in inventory["PrefixLists"]] == [[{"Cidr": "0.0.0.0/1"}, {"Cidr": "128.0.0.0/1"}]]


def test_reachability_can_be_told_from_the_inventory(stand, names):
    inventory = collect(stand.clients(STAGER), ("us-east-1",))
    open_groups = {item.group for item in exposures(inventory, [("tcp", 443), ("tcp", 22)])}
    assert open_groups == {names["web"], names["db"]}
    assert reaches(inventory, names["web"], names["endpoint"], "tcp", 5432)
    assert not reaches(inventory, "203.0.113.9", names["endpoint"], "tcp", 5432)


def test_groups_come_in_the_order_of_their_identifiers(stand, names):
    """moto keeps them in a set of objects, whose order is that of memory addresses and so differs from run to run."""
    seen = [item["Groups"] for item in collect(stand.clients(STAGER), ("us-east-1",))["NetworkInterfaces"]]
    many = next(groups for groups in seen if len(groups) == 4)
    assert many == sorted(many, key=lambda group: group["GroupId"])


def test_the_journal_makes_the_same_account_again(stand, names):
    async def again():
        process = AccountProcess(seed=7)
        await process.start()
        front = Front(process, lambda: NOW)
        await front.start()
        front.admit(STAGER)
        await front.replay(stand.front.saved_journal())
        return front

    before = collect(stand.clients(STAGER), ("us-east-1",))
    front = stand.run(again())
    try:
        assert collect(Clients(front.url, STAGER), ("us-east-1",)) == before
    finally:
        stand.run(front.close())
        stand.run(front.process.close())


def test_who_is_unknown_or_signs_wrongly_is_refused(stand, names):
    for identity in (Identity("x", "admin", "AKIAOTHER", "a"), Identity("x", "operator", ONCALL.key, "wrong")):
        assert code(stand.clients(identity).get("ec2").describe_volumes) == "AuthFailure"


def test_roles_are_enforced(stand, names):
    reader, operator = stand.clients(READER), stand.clients(ONCALL)
    assert reader.get("ec2").describe_volumes()["Volumes"]
    assert code(reader.get("ec2").delete_volume, VolumeId=names["left"]) == "UnauthorizedOperation"
    assert code(operator.get("iam").create_user, UserName="mallory") == "AccessDenied"
    assert (
        code(operator.get("sts").assume_role, RoleArn="arn:aws:iam::999999999999:role/admin", RoleSessionName="session")
        == "AccessDenied"
    )


def test_what_aws_refuses_is_refused(stand, names):
    ec2 = stand.clients(ONCALL).get("ec2")
    assert code(ec2.delete_volume, VolumeId=names["data"]) == "VolumeInUse"
    assert code(ec2.delete_volume, VolumeId=names["left"], DryRun=True) == "DryRunOperation"
    assert code(ec2.modify_volume, VolumeId=names["data"], Size=50) == "InvalidParameterValue"
    assert (
        code(ec2.modify_volume, VolumeId=names["data"], VolumeType="gp3", Iops=99_999) == "InvalidParameterCombination"
    )
    assert (
        code(ec2.modify_instance_attribute, InstanceId=names["web-1"], InstanceType={"Value": "m5.2xlarge"})
        == "IncorrectInstanceState"
    )
    base = next(item for item in ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"] if "AMI" in item["Description"])
    assert code(ec2.delete_snapshot, SnapshotId=base["SnapshotId"]) == "InvalidSnapshot.InUse"
    assert names["left"] in [volume["VolumeId"] for volume in ec2.describe_volumes()["Volumes"]]


@pytest.mark.parametrize(
    "given",
    [
        {"Size": -17585},
        {"Size": 0},
        {"Size": 16_385},
        {"Size": 4, "VolumeType": "st1"},
        {"Size": 10, "VolumeType": "gp3", "Iops": -5},
        {"Size": 10, "VolumeType": "gp3", "Throughput": 1},
    ],
)
def test_volumes_have_sizes_that_there_are(stand, names, given):
    """A negative size would be billed as a saving."""
    ec2 = stand.clients(ONCALL).get("ec2")
    before = len(ec2.describe_volumes()["Volumes"])
    assert code(ec2.create_volume, AvailabilityZone="us-east-1a", **given) == "InvalidParameterValue"
    assert len(ec2.describe_volumes()["Volumes"]) == before
    disk = {
        "DeviceName": "/dev/sdb",
        "Ebs": {"VolumeSize": given["Size"], "VolumeType": given.get("VolumeType", "gp2")},
    }
    if "Iops" not in given and "Throughput" not in given:
        run = {"ImageId": "ami-1", "MinCount": 1, "MaxCount": 1, "BlockDeviceMappings": [disk]}
        assert code(ec2.run_instances, **run) == "InvalidParameterValue"


def test_what_is_not_supported_is_an_aws_error_and_counted_never_html(stand, names):
    clients = stand.clients(ONCALL)
    ce = clients.get("ce").get_cost_and_usage
    period = {"Start": "2026-03-01", "End": "2026-03-31"}
    assert code(ce, TimePeriod=period, Granularity="DAILY", Metrics=["UnblendedCost"]) == "UnsupportedOperation"
    offering = clients.get("ec2").purchase_reserved_instances_offering
    assert code(offering, InstanceCount=1, ReservedInstancesOfferingId="x") == "UnsupportedOperation"
    assert stand.front.gaps["ce:GetCostAndUsage"] == 1
    assert stand.front.gaps["ec2:PurchaseReservedInstancesOffering"] == 1


@pytest.mark.parametrize(
    "path",
    ["/moto-api/data.json", "/MOTO-API/reset", "/%6doto-api/seed?a=1", "//moto-api/", "/x/%2e%2e/moto-api/reset"],
)
def test_the_administration_of_moto_is_out_of_reach(stand, names, path):
    connection = http.client.HTTPConnection("127.0.0.1", stand.front.port)
    try:
        connection.request("POST", path)
        assert connection.getresponse().status == 404
    finally:
        connection.close()


def test_every_call_is_logged_and_cloudtrail_knows_the_writes(stand, names):
    before = len(stand.front.records)
    clients = stand.clients(ONCALL)
    clients.get("ec2").create_tags(Resources=[names["left"]], Tags=[{"Key": "seen", "Value": "yes"}])
    events = clients.get("cloudtrail").lookup_events(
        LookupAttributes=[{"AttributeKey": "ResourceName", "AttributeValue": names["left"]}]
    )["Events"]
    new = stand.front.records[before:]
    assert [(record.user, record.action) for record in new] == [("oncall", "CreateTags"), ("oncall", "LookupEvents")]
    assert [(event["EventName"], event["Username"]) for event in events] == [("CreateTags", "oncall")]


def test_an_expelled_identity_is_out(stand, names):
    stand.front.admit(Identity("guest", "operator", "AKIAGUEST", "g"))
    guest = stand.clients(Identity("guest", "operator", "AKIAGUEST", "g")).get("ec2")
    assert guest.describe_volumes()["Volumes"]
    stand.front.expel("guest")
    assert code(guest.describe_volumes) == "AuthFailure"
