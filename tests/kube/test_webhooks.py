"""Admission webhooks in Services of the world: who is asked, what is sent, what becomes of answers (texts of Kubernetes 1.34)."""

import base64
import datetime
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from planes import fresh_plane

from itbench.kube.admission.certificates import distrust
from itbench.kube.client import ApiError
from itbench.kube.door import Request, Response
from itbench.kube.local import LocalClient
from itbench.kube.requests import Options

GROUP = "admissionregistration.k8s.io"
RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE", "DELETE"],
    "resources": ["configmaps"],
}
BUNDLE = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n").decode()
Reply = Callable[[dict[str, Any]], dict[str, Any]]


def _patch(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


class Nodes:
    """Services of a world whose webhooks answer by path."""

    def __init__(self, replies: dict[str, Reply | Response]) -> None:
        self.replies = replies
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.why = ""

    def http(self, host: str, port: int, request: Request, *, source: str = "") -> tuple[Response | None, str]:
        """Answer, or say why not."""
        path = request.path.split("?")[0]
        review = json.loads(request.body)["request"]
        self.asked.append((f"{host}:{port}{request.path}", review))
        if self.why:
            return None, self.why
        reply = self.replies[path]
        if isinstance(reply, Response):
            return reply, ""
        answer = {"uid": review["uid"], "allowed": True, **reply(review)}
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
        return Response(200, {"Content-Type": "application/json"}, json.dumps(body).encode()), ""


class Site:
    """A control plane with a Service `hooks` in front of one ready pod."""

    def __init__(self, **replies: Reply | Response) -> None:
        self.plane = fresh_plane()
        self.nodes = Nodes({f"/{name}": reply for name, reply in replies.items()})
        self.plane.registry.services.nodes = self.nodes
        self.client: LocalClient = self.plane.client("test")
        head = {"apiVersion": "v1", "kind": "Service"}
        for name in ("hooks", "empty"):
            self.client.create(
                "services", {**head, "metadata": {"name": name}, "spec": {"ports": [{"port": 443}]}}, "default"
            )
        spec = {"type": "ExternalName", "externalName": "x.y"}
        self.client.create("services", {**head, "metadata": {"name": "away"}, "spec": spec}, "default")
        self.client.create(
            "endpointslices.discovery.k8s.io",
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": "hooks", "labels": {"kubernetes.io/service-name": "hooks"}},
                "addressType": "IPv4",
                "ports": [{"name": "", "port": 8443, "protocol": "TCP"}],
                "endpoints": [{"addresses": ["10.244.0.7"], "conditions": {"ready": True}}],
            },
            "default",
        )

    def hook(self, *paths: str, kind: str = "Validating", service: str = "hooks", **more: Any) -> None:
        """One configuration with a webhook for each path."""
        rows = [
            {
                "name": f"{path}.example.com",
                "clientConfig": {
                    "service": {"name": service, "namespace": "default", "path": f"/{path}"},
                    "caBundle": BUNDLE,
                },
                "rules": [RULE],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                **more,
            }
            for path in paths
        ]
        body = {"apiVersion": f"{GROUP}/v1", "kind": f"{kind}WebhookConfiguration", "metadata": {"name": "h"}}
        self.client.create(f"{kind.lower()}webhookconfigurations.{GROUP}", {**body, "webhooks": rows})

    def create(self, **options: Any) -> Any:
        """Create a ConfigMap: the result."""
        registry = self.plane.registry
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"n": "5"}}
        row = registry.table.named("configmaps")
        return registry.create(row, body, "default", Options(user="eve", groups=("devs",), **options))


REFUSALS: list[tuple[dict[str, Any], int, str]] = [
    ({}, 400, "denied the request without explanation"),
    ({"status": {"message": "no way", "reason": "Teapot", "code": 418}}, 418, "denied the request: no way"),
    ({"status": {"reason": "NotGood"}}, 400, "denied the request: NotGood"),
    ({"status": {"message": "x", "code": 200}}, 400, "denied the request: x"),
]


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
@pytest.mark.parametrize(("status", "code", "text"), REFUSALS)
def test_a_refusal_carries_the_words_and_the_code_of_the_webhook(
    kind: str, status: dict[str, Any], code: int, text: str
) -> None:
    """Without either it is a 400."""
    site = Site(deny=lambda review: {"allowed": False, **status})
    site.hook("deny", kind=kind)
    with pytest.raises(ApiError) as refused:
        site.create()
    assert (refused.value.code, str(refused.value)) == (code, f'admission webhook "deny.example.com" {text}')


FAILURES: list[tuple[Reply | Response, str]] = [
    (
        lambda review: {"uid": "zzz"},
        'received invalid webhook response: expected response.uid="UID", got "zzz"',
    ),
    (
        lambda review: _patch({"op": "add", "path": "/data/a", "value": "1"}),
        "received invalid webhook response: validating webhook may not return response.patch",
    ),
    (
        Response(500, {}, b"oops"),
        'failed to call webhook: an error on the server ("unknown") has prevented the request ',
    ),
    (Response(404, {}, b"404"), "failed to call webhook: the server could not find the requested resource"),
    (
        Response(200, {"Content-Type": "application/json"}, b""),
        "failed to call webhook: 0-length response with status code: 200 and content type: application/json",
    ),
    (
        Response(200, {}, b"hello"),
        "failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value",
    ),
    (
        Response(200, {}, b'{"response":{}}'),
        "received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, "
        "got /, Kind=",
    ),
    (
        Response(200, {}, b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}'),
        "received invalid webhook response: webhook response was absent",
    ),
    (
        Response(200, {}, b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}'),
        "failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
    ),
]


@pytest.mark.parametrize(("reply", "text"), FAILURES)
def test_an_answer_that_is_none_fails_the_request_or_is_ignored(reply: Reply | Response, text: str) -> None:
    """The failure policy decides; the text says what was wrong."""
    site = Site(odd=reply)
    site.hook("odd")
    with pytest.raises(ApiError) as failed:
        site.create()
    uid = site.nodes.asked[-1][1]["uid"]
    head = 'Internal error occurred: failed calling webhook "odd.example.com": '
    assert failed.value.code == 500
    assert str(failed.value).startswith(head + text.replace("UID", uid))
    lenient = Site(odd=reply)
    lenient.hook("odd", failurePolicy="Ignore")
    assert lenient.create().created


UNREACHED = [
    ("gone", "", 'service "gone" not found'),
    ("empty", "", 'no endpoints available for service "empty"'),
    ("away", "", 'unsupported service type "ExternalName"'),
    ("hooks", "refused", "dial tcp 10.244.0.7:8443: connect: connection refused"),
    ("hooks", "timeout", "context deadline exceeded"),
    ("hooks", "denied", "context deadline exceeded"),
]


@pytest.mark.parametrize(("service", "why", "text"), UNREACHED)
def test_an_unreachable_service_is_reported_as_by_the_real_server(service: str, why: str, text: str) -> None:
    """URL, time-out and reason, as kubectl shows them."""
    site = Site()
    site.nodes.why = why
    site.hook("p", service=service)
    with pytest.raises(ApiError) as failed:
        site.create()
    url = f"https://{service}.default.svc:443/p?timeout=10s"
    wanted = f'failed calling webhook "p.example.com": failed to call webhook: Post "{url}": {text}'
    assert str(failed.value) == f"Internal error occurred: {wanted}"


def test_urls_on_hosts_that_nobody_allowed_time_out() -> None:
    """Nothing leaves the machine unless it was allowed at start."""
    site = Site()
    site.hook("p", clientConfig={"url": "https://hooks.example.org/p"}, timeoutSeconds=3)
    with pytest.raises(ApiError, match=r'Post "https://hooks\.example\.org/p\?timeout=3s": context deadline exceeded'):
        site.create()


def test_what_is_sent_is_an_admission_review() -> None:
    """Kind, resource, user, operation, objects and options; validating webhooks see uid and times, mutating ones not yet."""
    site = Site(ok=lambda review: {}, see=lambda review: {})
    site.hook("ok", kind="Mutating")
    site.hook("see")
    site.create(dry_run=True)
    (where, mutating), (_, validating) = site.nodes.asked
    assert where == "hooks.default.svc:443/ok?timeout=10s"
    assert mutating["kind"] == mutating["requestKind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert mutating["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert mutating["userInfo"] == {"username": "eve", "groups": ["devs"]}
    assert (mutating["operation"], mutating["name"], mutating["namespace"]) == ("CREATE", "x", "default")
    options = {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}
    assert (mutating["dryRun"], mutating["options"], mutating["oldObject"]) == (True, options, None)
    assert set(mutating["object"]["metadata"]) - {"managedFields"} == {"name", "namespace"}
    assert validating["object"]["metadata"].keys() >= {"uid", "creationTimestamp"}


def test_updates_and_deletes_show_the_old_state() -> None:
    """`oldObject` is what was there; a delete has no `object`."""
    site = Site(see=lambda review: {})
    site.create()
    site.hook("see")
    site.client.patch("configmaps", "x", "default", {"data": {"n": "7"}})
    site.client.delete("configmaps", "x", "default")
    update, delete = (review for _, review in site.nodes.asked)
    assert (update["oldObject"]["data"], update["object"]["data"]) == ({"n": "5"}, {"n": "7"})
    assert (delete["operation"], delete["object"], delete["oldObject"]["data"]) == ("DELETE", None, {"n": "7"})


def test_patches_are_applied_in_order_and_shown_again_where_asked_for() -> None:
    """A later webhook sees the patch of an earlier one; `IfNeeded` sees the end."""

    def count(review: dict[str, Any]) -> dict[str, Any]:
        return _patch({"op": "add", "path": "/data/count", "value": str(len(review["object"]["data"]))})

    def add(review: dict[str, Any]) -> dict[str, Any]:
        return _patch({"op": "add", "path": "/data/added", "value": "1"})

    site = Site(add=add, count=count)
    site.hook("add", "count", kind="Mutating")
    assert site.create().object["data"] == {"n": "5", "added": "1", "count": "2"}
    site = Site(add=add, count=count)
    site.hook("count", "add", kind="Mutating", reinvocationPolicy="IfNeeded")
    assert site.create().object["data"] == {"n": "5", "added": "1", "count": "3"}


def test_what_a_webhook_adds_is_defaulted_like_the_rest() -> None:
    """An injected container gets its defaults and the token of the pod's account."""
    container = {"name": "side", "image": "busybox"}
    site = Site(inject=lambda review: _patch({"op": "add", "path": "/spec/containers/-", "value": container}))
    site.plane.run(site.plane.now)
    site.hook("inject", kind="Mutating", rules=[{**RULE, "resources": ["pods"]}])
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    made = site.client.create("pods", {**pod, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}, "default")
    main, side = made["spec"]["containers"]
    assert side["terminationMessagePath"] == main["terminationMessagePath"] == "/dev/termination-log"
    assert side["volumeMounts"] == main["volumeMounts"]


BAD_PATCHES = [
    (
        _patch({"op": "remove", "path": "/nope/x"}),
        'remove operation does not apply: doc is missing path: "/nope/x": missing',
    ),
    (
        _patch({"op": "add", "path": "/data", "value": 3}),
        "json: cannot unmarshal number into Go struct field ConfigMap.data",
    ),
    ({"patch": "W10="}, 'failed calling webhook "m.example.com": received invalid webhook response: webhook returned'),
    (
        {"patch": "!!", "patchType": "JSONPatch"},
        'failed calling webhook "m.example.com": failed to call webhook: illegal',
    ),
]


@pytest.mark.parametrize(("reply", "text"), BAD_PATCHES)
def test_bad_patches_fail_the_request(reply: dict[str, Any], text: str) -> None:
    """In the words of the real server."""
    site = Site(m=lambda review: reply)
    site.hook("m", kind="Mutating")
    with pytest.raises(ApiError) as failed:
        site.create()
    assert str(failed.value).startswith(f"Internal error occurred: {text}")


def test_deletes_may_be_refused_but_not_changed() -> None:
    """A mutating webhook that patches a delete is an error."""
    site = Site(m=lambda review: _patch({"op": "add", "path": "/x", "value": 1}))
    site.create()
    site.hook("m", kind="Mutating")
    with pytest.raises(ApiError, match="attempted to modify the object, which is not supported for this operation"):
        site.client.delete("configmaps", "x", "default")


@pytest.mark.parametrize(
    "more",
    [
        {"namespaceSelector": {"matchLabels": {"a": "b"}}},
        {"objectSelector": {"matchLabels": {"a": "b"}}},
        {"rules": [{**RULE, "scope": "Cluster"}]},
        {"rules": [{**RULE, "operations": ["DELETE"]}]},
        {"rules": [{**RULE, "resources": ["configmaps/status"]}]},
        {"matchConditions": [{"name": "c", "expression": "object.data.n == '6'"}]},
        {"failurePolicy": "Ignore", "matchConditions": [{"name": "c", "expression": "object.zz == '6'"}]},
    ],
)
def test_webhooks_are_asked_only_about_what_they_want_to_see(more: dict[str, Any]) -> None:
    """Rules, scope, selectors and conditions."""
    site = Site(deny=lambda review: {"allowed": False})
    site.hook("deny", **more)
    assert site.create().created
    assert site.nodes.asked == []


def test_a_condition_that_fails_refuses() -> None:
    """With failure policy Fail the request is forbidden."""
    site = Site(ok=lambda review: {})
    site.hook("ok", matchConditions=[{"name": "c", "expression": "object.zz == '6'"}])
    with pytest.raises(ApiError) as refused:
        site.create()
    wanted = "configmaps \"x\" is forbidden: expression 'object.zz == '6'' resulted in error: no such key: zz"
    assert (refused.value.code, str(refused.value)) == (403, wanted)


def test_warnings_reach_the_client_and_annotations_the_audit() -> None:
    """As warnings of the result, and as notes."""
    site = Site(w=lambda review: {"warnings": ["w1", "w2"], "auditAnnotations": {"k": "v"}})
    site.hook("w")
    notes: list[str] = []
    assert site.create(notes=notes).warnings == ["w1", "w2"]
    assert notes == ["w.example.com/k: v"]


def test_configurations_themselves_are_out_of_reach() -> None:
    """A webhook against everything can still be deleted."""
    site = Site(deny=lambda review: {"allowed": False})
    every = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    site.hook("deny", rules=[every])
    with pytest.raises(ApiError, match="denied"):
        site.create()
    site.client.delete(f"validatingwebhookconfigurations.{GROUP}", "h")
    assert site.create().created


def test_evictions_and_bindings_are_admitted_too() -> None:
    """What is posted to a subresource is shown as its own kind."""
    site = Site(deny=lambda review: {"allowed": False})
    site.plane.run(site.plane.now)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    site.client.create("pods", {**pod, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}, "default")
    site.hook("deny", rules=[{**RULE, "operations": ["*"], "resources": ["pods/eviction", "pods/binding"]}])
    with pytest.raises(ApiError, match="denied"):
        site.client.evict("p", "default")
    with pytest.raises(ApiError, match="denied"):
        site.client.post("pods", "p", "default", "binding", {"target": {"kind": "Node", "name": "n"}})
    assert [review["kind"]["kind"] for _, review in site.nodes.asked] == ["Eviction", "Binding"]


def _pair(name: str, signer: Any = None, host: str = "", days: int = 10) -> tuple[x509.Certificate, Any]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer[0].subject if signer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=days))
    )
    if host:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
    return builder.sign(signer[1] if signer else key, hashes.SHA256()), key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def test_certificates_of_services_are_checked_against_the_bundle() -> None:
    """Unknown authority, wrong name, expired: each in Go's words."""
    host = "hooks.default.svc"
    authority, other = _pair("ca"), _pair("other")
    leaf = _pem(_pair("hook", authority, host)[0])
    now = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    assert distrust(leaf, _pem(authority[0]), host, now) == ""
    unknown = "x509: certificate signed by unknown authority"
    assert distrust(leaf, _pem(other[0]), host, now) == unknown
    assert distrust(leaf, b"", host, now) == unknown
    wrong = f"x509: certificate is valid for {host}, not x.default.svc"
    assert distrust(leaf, _pem(authority[0]), "x.default.svc", now) == wrong
    late = now + datetime.timedelta(days=30)
    assert distrust(leaf, _pem(authority[0]), host, late) == (
        "x509: certificate has expired or is not yet valid: current time 2026-02-01T00:00:00Z is after 2026-01-11T00:00:00Z"
    )
