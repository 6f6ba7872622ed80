"""Reading requests: moto's administration is closed in every spelling, signatures count, errors are in the client's form."""

import json
from urllib.parse import quote

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from itbench.cloud import wire
from itbench.cloud.access import Identity, allowed


def spell(text, how):
    for step in how:
        coded = "".join(f"%{ord(letter):02x}" if letter != "%" else "%25" for letter in text)
        text = {"quote": quote(text, safe="/"), "hex": coded, "upper": text.upper()}[step]
    return text


@given(
    st.lists(st.sampled_from(["quote", "hex", "upper"]), max_size=3),
    st.sampled_from(["/moto-api/", "//moto-api/", "/x/../moto-api/", "http://127.0.0.1:1/moto-api/", "/./moto-api/"]),
    st.sampled_from(["reset", "seed?a=42", "data.json", "recorder/start"]),
)
def test_the_administration_is_closed_in_every_spelling(how, base, rest):
    assert wire.closed(spell(base, how) + rest)


def test_ordinary_paths_are_open():
    assert not any(wire.closed(path) for path in ("/", "/bucket/key", "/?Action=DescribeVolumes", "/moto/api"))


def signed(service, method="POST", url="http://127.0.0.1:5000/", data=b"", secret="s3cret", headers=None):
    request = AWSRequest(method=method, url=url, data=data, headers=headers or {})
    SigV4Auth(Credentials("AKIAX", secret), service, "eu-west-1").add_auth(request)
    path = url.split(":5000", 1)[1]
    return wire.read(method, path, dict(request.headers) | {"Host": "127.0.0.1:5000"}, data)


FORM = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}


@pytest.mark.parametrize("url", ["http://127.0.0.1:5000/", "http://127.0.0.1:5000/a%20b?x=1&list-type=2&empty="])
def test_a_request_signed_with_the_secret_is_accepted_and_with_another_refused(url):
    parts = signed("ec2", url=url, data=b"Action=DescribeVolumes&Version=2016-11-15", headers=FORM)
    assert (parts.key, parts.region, parts.service, parts.action) == ("AKIAX", "eu-west-1", "ec2", "DescribeVolumes")
    assert wire.signed(parts, "s3cret")
    assert not wire.signed(parts, "other")


def test_a_changed_body_breaks_the_signature():
    parts = signed("ec2", data=b"Action=DescribeVolumes", headers=FORM)
    changed = wire.read("POST", "/", parts.headers, b"Action=DeleteVolume")
    assert not wire.signed(changed, "s3cret")


def test_headers_that_steer_moto_are_not_passed_on():
    headers = {"x-moto-account-id": "1", "X-Moto-Foo": "1", "X-Amz-Date": "d", "Cookie": "c", "Host": "evil"}
    passed = wire.read("POST", "/", headers, b"").forwarded
    assert "x-amz-date" in passed
    assert not [name for name in passed if "moto" in name or name == "cookie"]
    assert passed["host"] != "evil"


def test_actions_are_read_in_every_protocol():
    target = {"X-Amz-Target": "CloudTrail_20131101.LookupEvents", "Content-Type": "application/x-amz-json-1.1"}
    assert wire.read("POST", "/", target, b"{}").action == "LookupEvents"
    rpc = "/service/GraniteServiceVersion20100801/operation/PutMetricData"
    assert wire.read("POST", rpc, {}, b"").action == "PutMetricData"
    assert wire.read("GET", "/bucket", {}, b"").reads
    assert not wire.read("DELETE", "/bucket", {}, b"").reads


def test_errors_come_in_the_clients_own_form():
    ec2 = signed("ec2", data=b"Action=X", headers=FORM)
    assert b"<Response><Errors><Error><Code>Nope</Code>" in wire.error(ec2, "Nope", "a < b")[1]
    assert b"a &lt; b" in wire.error(ec2, "Nope", "a < b")[1]
    other = wire.read("POST", "/", {"Content-Type": "application/x-amz-json-1.1"}, b"{}")
    assert json.loads(wire.error(other, "Nope", "text")[1]) == {"__type": "Nope", "message": "text"}


def test_roles_may_do_what_their_table_says():
    reader, operator, admin = (Identity("x", role, "k", "s") for role in ("read-only", "operator", "admin"))
    assert allowed(reader, "ec2", "DescribeVolumes", reads=True)
    assert not allowed(reader, "ec2", "DeleteVolume", reads=False)
    assert allowed(operator, "ec2", "DeleteVolume", reads=False)
    assert not allowed(operator, "iam", "CreateAccessKey", reads=False)
    assert not allowed(operator, "sts", "AssumeRole", reads=False)
    assert not allowed(operator, "cloudtrail", "StopLogging", reads=False)
    assert allowed(admin, "iam", "CreateUser", reads=False)
