"""The aws tool: command lines as the AWS CLI reads them, against an emulated account."""

import json
import logging

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.tools import aws
from itbench.tools.aws_words import BadWords, options, parameters
from itbench.tools.catalog import toolbox

EC2 = botocore.session.Session().get_service_model("ec2")


def shape(operation):
    """The input shape of an EC2 operation."""
    return EC2.operation_model(operation).input_shape


def words(operation, *line):
    """Parameters of an EC2 operation from its words."""
    return parameters(shape(operation), options(line), lambda path: b"from " + path.encode())


def test_filters_in_shorthand():
    """The commonest form, with several values and several filters."""
    assert words("DescribeVolumes", "--filters", "Name=status,Values=available,error", "Name=tag:team,Values=a b") == {
        "Filters": [{"Name": "status", "Values": ["available", "error"]}, {"Name": "tag:team", "Values": ["a b"]}]
    }


def test_lists_numbers_booleans_and_nested_shorthand():
    """Each by the shape of its member."""
    assert words("TerminateInstances", "--instance-ids", "i-1", "i-2", "--no-dry-run") == {
        "InstanceIds": ["i-1", "i-2"],
        "DryRun": False,
    }
    line = [
        "--size",
        "10",
        "--encrypted",
        "--tag-specifications",
        "ResourceType=volume,Tags=[{Key=a,Value=b},{Key=c,Value=d}]",
    ]
    assert words("CreateVolume", *line) == {
        "Size": 10,
        "Encrypted": True,
        "TagSpecifications": [
            {"ResourceType": "volume", "Tags": [{"Key": "a", "Value": "b"}, {"Key": "c", "Value": "d"}]}
        ],
    }
    assert words(
        "RunInstances", "--block-device-mappings", "DeviceName=/dev/sda1,Ebs={VolumeSize=8,VolumeType=gp3}"
    ) == {"BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 8, "VolumeType": "gp3"}}]}


def test_json_and_files_in_place_of_shorthand():
    """Structures may be JSON, texts may come from a file of the workspace."""
    rule = [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}]
    assert words("RevokeSecurityGroupIngress", "--ip-permissions", json.dumps(rule)) == {"IpPermissions": rule}
    assert words("CreateSecurityGroup", "--description", "file://a.txt") == {"Description": "from a.txt"}


@pytest.mark.parametrize(
    ("operation", "line", "word"),
    [
        ("DescribeVolumes", ["--filter", "Name=a,Values=b"], "--filters"),
        ("DescribeVolumes", ["volumes"], "unexpected word"),
        ("CreateVolume", ["--size", "ten"], "not a number"),
        ("CreateVolume", ["--size", "1", "2"], "one value"),
        ("CreateVolume", ["--size"], "needs a value"),
        ("DescribeVolumes", ["--filters", "Nam=a"], "unknown key 'Nam'"),
        ("DescribeVolumes", ["--filters", "[{"], "not JSON"),
        ("DescribeVolumes", ["--filters", "Name"], "KEY=VALUE"),
        ("CreateVolume", ["--encrypted", "maybe"], "neither true nor false"),
    ],
)
def test_wrong_words_are_explained(operation, line, word):
    """One line that names the option."""
    with pytest.raises(BadWords) as caught:
        words(operation, *line)
    assert word in str(caught.value)


@given(st.lists(st.text("ab=,[]{}'\" -\\", min_size=1, max_size=12), min_size=1, max_size=3))
def test_shorthand_never_crashes_or_hangs(texts):
    """Any text is either read or refused."""
    try:
        words("CreateVolume", "--tag-specifications=" + texts[0], *[f"--size={text}" for text in texts[1:]])
    except BadWords as error:
        assert str(error)


@pytest.fixture(scope="module")
def account():
    """An emulated account on the loopback."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def box(account, make_context):
    """The tools of a trial with that account."""
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1"}
    return toolbox(make_context(aws_endpoint_url=account, aws_env=keys))


def test_the_hosts_own_aws_settings_play_no_part(monkeypatch):
    """Neither profile nor endpoint nor keys of the user's environment reach a client."""
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "http://production.example")
    aws._session.cache_clear()
    client = aws._client("ec2", "eu-west-1", "http://127.0.0.1:1", ("k", "s", None))
    assert client.meta.endpoint_url == "http://127.0.0.1:1"
    assert client._request_signer._credentials.access_key == "k"
    aws._session.cache_clear()


async def test_a_volume_lives_and_dies(box):
    """Create, list with a query, delete."""
    made = await box.call("aws", {"command": "ec2 create-volume --availability-zone us-east-1a --size 3"})
    volume = json.loads(made.text)["VolumeId"]
    listing = f"aws ec2 describe-volumes --volume-ids {volume} --query 'Volumes[].[Size,State]' --output json"
    assert json.loads((await box.call("aws", {"command": listing})).text) == [[3, "available"]]
    gone = await box.call("aws", {"command": ["ec2", "delete-volume", "--volume-id", volume]})
    assert (gone.ok, gone.text) == (True, "")
    error = await box.call("aws", {"command": f"ec2 delete-volume --volume-id {volume}"})
    assert not error.ok
    assert "InvalidVolume.NotFound" in error.text


async def test_security_group_rules_in_the_clis_own_short_form(box):
    """--protocol, --port and --cidr work as in the AWS CLI."""
    made = await box.call("aws", {"command": "ec2 create-security-group --group-name g --description d"})
    group = json.loads(made.text)["GroupId"]
    for verb in ("authorize", "revoke"):
        command = f"ec2 {verb}-security-group-ingress --group-id {group} --protocol tcp --port 22 --cidr 0.0.0.0/0"
        result = await box.call("aws", {"command": command})
        assert result.ok, result.text
    described = await box.call("aws", {"command": f"ec2 describe-security-groups --group-ids {group}"})
    assert json.loads(described.text)["SecurityGroups"][0]["IpPermissions"] == []


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("ec2 describe-volume", "describe-volumes"),
        ("ecc describe-volumes", "did you mean"),
        ("s3 ls", "s3api"),
        ("ec2", "SERVICE OPERATION"),
        ("ec2 describe-volumes --endpoint-url http://elsewhere", "set by the trial"),
        ("ec2 describe-volumes --output table", "only json"),
        ("ec2 describe-volumes --query 'a['", "aws: "),
        ("ec2 describe-volumes | head", "'|'"),
    ],
)
async def test_wrong_commands_are_explained(box, command, word):
    """Each with what would be right."""
    result = await box.call("aws", {"command": command})
    assert not result.ok
    assert word in result.text
