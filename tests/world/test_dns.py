"""Names of the cluster as its CoreDNS pods are told to answer them."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.world.dns import NXDOMAIN, ORDINARY, SERVFAIL, Unreadable, candidates, parse

PLAIN = """.:53 {
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
    }
    forward . /etc/resolv.conf
}
"""
NAME = "user-service.social.svc.cluster.local."


def with_block(block: str) -> str:
    """The plain file with further lines before its zone."""
    return PLAIN.replace("    kubernetes", f"{block}    kubernetes")


@pytest.mark.parametrize(
    ("block", "answer"),
    [
        ("", ORDINARY),
        ('    template ANY ANY cluster.local {\n match "^user-service[.]social"\n rcode NXDOMAIN\n }\n', NXDOMAIN),
        ("    template ANY ANY cluster.local {\n rcode SERVFAIL\n }\n", SERVFAIL),
        ("    template IN A example.org {\n rcode NXDOMAIN\n }\n", ORDINARY),
        ('    template IN A cluster.local {\n answer "{{ .Name }} 60 IN A 192.0.2.7"\n }\n', "192.0.2.7"),
        ("    hosts {\n 192.0.2.9 user-service.social.svc.cluster.local\n fallthrough\n }\n", "192.0.2.9"),
        (f"    rewrite name {NAME} nothing.example.\n", ORDINARY),
    ],
)
def test_a_corefile_answers_by_its_plugins(block, answer):
    assert parse(with_block(block)).answer(NAME) == answer


def test_without_its_zone_the_cluster_has_no_names():
    file = parse(PLAIN.replace("cluster.local", "other.local"))
    assert file.answer(NAME) == NXDOMAIN and file.answer("example.org.") == ORDINARY


@pytest.mark.parametrize("text", [".:53 {\n errors\n", "}\n", '.:53 {\n template ANY ANY . {\n match "("\n }\n}\n'])
def test_a_file_that_is_no_corefile_is_refused(text):
    with pytest.raises(Unreadable):
        parse(text)


@given(st.text(alphabet='abc.{}# \n"^(', max_size=80))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(Unreadable):
        parse(text).answer(NAME)


def test_a_short_name_is_looked_for_in_the_namespace_first():
    assert candidates("cart", "shop")[0] == "cart.shop.svc.cluster.local." and candidates("a.b.", "shop") == ["a.b."]
