"""Who may do what: tokens, RBAC, impersonation, reviews, audit."""

import base64
import json
import re
from typing import Any

import pytest

from itbench.kube.client import ApiError
from itbench.kube.rbac import Access, Authorizer, User, forbidden_message, rule_allows

PODS = "/api/v1/namespaces/default/pods"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def test_no_token_may_ask_for_health_and_version_only(site: Any) -> None:
    """Anonymous requests get what public-info-viewer allows."""
    assert (await site.http("GET", "/version", user="")).status == 200
    assert (await site.http("GET", "/readyz", user="")).body == b"ok"
    refused = await site.http("GET", PODS, user="")
    assert refused.status == 403
    assert 'User "system:anonymous" cannot list resource "pods"' in refused.json["message"]


async def test_a_bad_token_is_unauthorized(site: Any) -> None:
    """A token that nobody issued is 401, also where anonymous might."""
    answer = await site.http("GET", "/version", headers={"Authorization": "Bearer nonsense"})
    assert (answer.status, answer.json["reason"]) == (401, "Unauthorized")


async def test_rights_come_from_bindings_and_vanish_with_them(site: Any) -> None:
    """A RoleBinding to the role `view` allows reads in its namespace only, until it is deleted."""
    assert (await site.http("GET", PODS, user="eve")).status == 403
    binding = {
        "metadata": {"name": "eve"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "eve"}],
    }
    made = await site.http("POST", f"{RBAC}/namespaces/default/rolebindings", binding)
    assert made.status == 201
    assert (await site.http("GET", PODS, user="eve")).status == 200
    assert (await site.http("DELETE", f"{PODS}/x", user="eve")).status == 403
    assert (await site.http("GET", "/api/v1/namespaces/kube-system/pods", user="eve")).status == 403
    assert (await site.http("GET", "/api/v1/namespaces/default/secrets", user="eve")).status == 403
    await site.http("DELETE", f"{RBAC}/namespaces/default/rolebindings/eve")
    assert (await site.http("GET", PODS, user="eve")).status == 403


async def test_access_reviews_agree_with_what_happens(site: Any) -> None:
    """SelfSubjectAccessReview says what the next request would be answered."""
    spec = {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    denied = await site.http("POST", path, {"spec": spec}, user="eve")
    assert (denied.status, denied.json["status"]["allowed"]) == (201, False)
    assert (await site.http("POST", path, {"spec": spec})).json["status"]["allowed"] is True
    other = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    asked = await site.http("POST", other, {"spec": {**spec, "user": "x", "groups": ["system:masters"]}})
    assert asked.json["status"]["allowed"] is True
    assert (await site.http("POST", path, {"spec": {}})).status == 422


async def test_impersonation_needs_the_right_to_it(site: Any) -> None:
    """An administrator may act as somebody, who then has only his own rights; others may not."""
    act = {"Impersonate-User": "eve"}
    assert (await site.http("GET", PODS, headers=act)).status == 403
    who = await site.http("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, headers=act)
    assert who.json["status"]["userInfo"]["username"] == "eve"
    refused = await site.http("GET", PODS, user="eve", headers={"Impersonate-User": "admin"})
    assert 'cannot impersonate resource "users"' in refused.json["message"]


async def test_impersonation_carries_groups_uid_and_extras(site: Any) -> None:
    """What the headers say is what `whoami` shows; without a user they are an error in plain text."""
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    act = {"Impersonate-User": "eve", "Impersonate-Uid": "u-1", "Impersonate-Extra-acme.com%2Fproject": "p"}
    info = (await site.http("POST", path, {}, headers={**act, "Impersonate-Group": "devs"})).json["status"]["userInfo"]
    assert (info["username"], info["uid"], info["groups"]) == ("eve", "u-1", ["devs", "system:authenticated"])
    assert info["extra"] == {"acme.com/project": ["p"]}
    nobody = await site.http("POST", path, {}, headers={"Impersonate-Uid": "x"})
    wanted = f'Internal Server Error: "{path}": requested [{{UID  x  authentication.k8s.io/v1  }}] without impersonating a user'
    assert (nobody.status, nobody.body.decode().strip()) == (500, wanted)


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"Impersonate-Group": "ops"}, 'resource "groups" in API group ""'),
        ({"Impersonate-Uid": "u"}, 'resource "uids" in API group "authentication.k8s.io"'),
        ({"Impersonate-Extra-scopes": "u"}, 'resource "userextras/scopes" in API group "authentication.k8s.io"'),
    ],
)
async def test_each_part_of_an_impersonation_takes_its_own_right(site: Any, headers: dict[str, str], text: str) -> None:
    """Who may act as bob may not for that reason have his groups, uid and extras."""
    rules = [{"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["bob"]}]
    await site.http("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "imp"}, "rules": rules})
    binding = {
        "metadata": {"name": "imp"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "imp"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "mallory"}],
    }
    await site.http("POST", f"{RBAC}/clusterrolebindings", binding)
    act = {"Impersonate-User": "bob"}
    site.plane.audit.clear()
    refused = await site.http("GET", PODS, user="mallory", headers=act)
    assert 'User "bob" cannot list resource "pods"' in refused.json["message"]
    refused = await site.http("GET", PODS, user="mallory", headers={**act, **headers})
    assert f'User "mallory" cannot impersonate {text}' in refused.json["message"]
    rows = [(row.user, row.impersonated, row.code, row.detail) for row in site.plane.audit]
    assert rows == [("mallory", "bob", 403, ""), ("mallory", "", 403, "impersonate bob")]


async def test_bound_tokens_die_with_their_object_and_hold_for_their_audiences(site: Any) -> None:
    """A token bound to a Secret ends with it; one for other audiences is none here, and a TokenReview says why."""
    path, reviews = "/api/v1/namespaces/default/serviceaccounts/default/token", "/apis/authentication.k8s.io/v1"
    await site.http("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
    ref = {"kind": "Secret", "apiVersion": "v1", "name": "s"}
    made = await site.http("POST", path, {"spec": {"boundObjectRef": ref}})
    held = {"Authorization": f"Bearer {made.json['status']['token']}"}
    assert (await site.http("POST", f"{reviews}/selfsubjectreviews", {}, headers=held)).status == 201
    await site.http("DELETE", "/api/v1/namespaces/default/secrets/s")
    assert (await site.http("POST", f"{reviews}/selfsubjectreviews", {}, headers=held)).status == 401
    other = (await site.http("POST", path, {"spec": {"audiences": ["a", "b"]}})).json["status"]["token"]
    assert (await site.http("GET", "/api", headers={"Authorization": f"Bearer {other}"})).status == 401
    spec = {"token": other, "audiences": ["b", "c"]}
    status = (await site.http("POST", f"{reviews}/tokenreviews", {"spec": spec})).json["status"]
    assert (status["authenticated"], status["audiences"]) == (True, ["b"])
    status = (await site.http("POST", f"{reviews}/tokenreviews", {"spec": {"token": other}})).json["status"]
    assert status["error"] == (
        '[invalid bearer token, token audiences ["a" "b"] is invalid for the target audiences '
        '["https://kubernetes.default.svc.cluster.local"]]'
    )


@pytest.mark.parametrize(
    ("spec", "code", "text"),
    [
        ({"expirationSeconds": 5}, 422, "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": 1 << 33}, 422, "may not specify a duration larger than 2^32 seconds"),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "no"}}, 404, 'pods "no" not found'),
        (
            {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "no"}},
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
    ],
)
async def test_token_requests_are_checked(site: Any, spec: dict[str, Any], code: int, text: str) -> None:
    """Recorded texts."""
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    answer = await site.http("POST", path, {"spec": spec})
    assert (answer.status, text in answer.json["message"]) == (code, True)


async def test_local_reviews_stay_in_their_namespace(site: Any) -> None:
    """The namespace of the path is the one that is asked about."""
    path = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews"
    attributes = {"verb": "get", "resource": "pods", "namespace": "other"}
    answer = await site.http("POST", path, {"spec": {"resourceAttributes": attributes, "user": "eve"}})
    assert (answer.status, "must match metadata.namespace" in answer.json["message"]) == (422, True)


async def test_service_account_tokens_carry_their_account(site: Any) -> None:
    """A requested token authenticates as the account, and a TokenReview knows it."""
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    token = (await site.http("POST", path, {"spec": {"expirationSeconds": 600}})).json["status"]["token"]
    name = "system:serviceaccount:default:default"
    key = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))["kid"]
    assert re.fullmatch(r"[\w-]{43}", key), "the key is named by its digest, as on a real cluster"
    refused = await site.http("GET", PODS, headers={"Authorization": f"Bearer {token}"})
    assert f'User "{name}" cannot list' in refused.json["message"]
    review = await site.http("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})
    assert review.json["status"]["user"]["username"] == name
    site.plane.run(700.0)
    assert (await site.http("GET", PODS, headers={"Authorization": f"Bearer {token}"})).status == 401
    assert (await site.http("POST", path, {"spec": {"expirationSeconds": 60}})).status == 422


async def test_every_request_leaves_a_record(site: Any) -> None:
    """Who, verb, object, code and digests of both states, denied requests included."""
    site.plane.audit.clear()
    body = {"metadata": {"name": "c"}, "data": {"a": "1"}}
    maps = "/api/v1/namespaces/default/configmaps"
    await site.http("POST", maps, body, headers={"User-Agent": "tool/1"})
    await site.http(
        "PATCH", f"{maps}/c", {"data": {"a": "2"}}, headers={"Content-Type": "application/merge-patch+json"}
    )
    await site.http("DELETE", f"{maps}/c", user="eve")
    await site.http("DELETE", f"{maps}/c?dryRun=All")
    await site.http("DELETE", f"{maps}/c")
    rows = site.plane.audit
    assert [(r.verb, r.resource, r.name, r.code, r.user) for r in rows] == [
        ("create", "configmaps", "c", 201, "admin"),
        ("patch", "configmaps", "c", 200, "admin"),
        ("delete", "configmaps", "c", 403, "eve"),
        ("delete", "configmaps", "c", 200, "admin"),
        ("delete", "configmaps", "c", 200, "admin"),
    ]
    assert rows[0].manager == "tool"
    assert (rows[0].before, bool(rows[0].after)) == ("", True)
    assert rows[1].before == rows[0].after != rows[1].after
    assert [r.writes for r in rows] == [True, True, True, False, True]
    assert (rows[4].before, rows[4].after) == (rows[1].after, "")


async def test_nobody_grants_what_he_does_not_hold(site: Any) -> None:
    """A user who may write roles and bindings cannot make himself administrator; the text names the excess."""
    rules = [
        {"verbs": ["*"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
    ]
    rules[0]["verbs"] = ["create", "update", "get"]
    path = f"{RBAC}/namespaces/default"
    await site.http("POST", f"{path}/roles", {"metadata": {"name": "r"}, "rules": rules})
    subjects = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "eve"}]
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    await site.http("POST", f"{path}/rolebindings", {"metadata": {"name": "b"}, "roleRef": ref, "subjects": subjects})
    more = [{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]
    refused = await site.http("POST", f"{path}/roles", {"metadata": {"name": "s"}, "rules": more}, user="eve")
    assert refused.status == 403
    assert refused.json["message"].endswith(
        'not currently held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
    )
    held = await site.http("POST", f"{path}/roles", {"metadata": {"name": "t"}, "rules": rules[1:]}, user="eve")
    assert held.status == 201
    admin = {**ref, "kind": "ClusterRole", "name": "cluster-admin"}
    grab = {"metadata": {"name": "c"}, "roleRef": admin, "subjects": subjects}
    assert (await site.http("POST", f"{path}/rolebindings", grab, user="eve")).status == 403


@pytest.mark.parametrize(
    ("rule", "access", "allowed"),
    [
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, Access("get", "", "pods"), True),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, Access("get", "", "pods", "log"), False),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}, Access("get", "", "pods", "log"), True),
        ({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*/scale"]}, Access("get", "apps", "x", "scale"), True),
        ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, Access("delete", "apps", "x", "scale"), True),
        (
            {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"]},
            Access("get", "", "secrets", name="b"),
            False,
        ),
        ({"verbs": ["get"], "nonResourceURLs": ["/api/*"]}, Access("get", path="/api/v1"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/api"]}, Access("get", path="/api/v1"), False),
    ],
)
def test_rules_match_as_in_rbac(rule: dict[str, Any], access: Access, allowed: bool) -> None:
    """Verbs, groups, resources with subresources, names and paths, with their wildcards."""
    assert rule_allows(rule, access) is allowed


def test_denials_read_as_on_a_real_server() -> None:
    """The text names user, verb, resource, group and scope."""
    user = User("viewer")
    assert forbidden_message(user, Access("list", "", "pods", "", "g")) == (
        'pods is forbidden: User "viewer" cannot list resource "pods" in API group "" in the namespace "g"'
    )
    assert forbidden_message(user, Access("get", "apps", "deployments", "scale", "", "w")) == (
        'deployments.apps "w" is forbidden: User "viewer" cannot get resource "deployments/scale" in API group "apps" '
        "at the cluster scope"
    )
    assert forbidden_message(user, Access("get", path="/")) == 'forbidden: User "viewer" cannot get path "/"'


class _Roles:
    """A client that knows four roles, of which one aggregates another."""

    def list(self, resource: str, namespace: str = "", **_: str) -> "list[dict[str, Any]]":
        rule = {"verbs": ["get"], "apiGroups": ["x"], "resources": ["y"]}
        ref = {"kind": "ClusterRole", "name": "sum"}
        rows: dict[str, Any] = {
            "clusterroles": [
                {"metadata": {"name": "part", "labels": {"to": "sum"}}, "rules": [rule]},
                {
                    "metadata": {"name": "sum"},
                    "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "sum"}}]},
                },
            ],
            "rolebindings": [
                {
                    "metadata": {"name": "b", "namespace": "n"},
                    "roleRef": ref,
                    "subjects": [{"kind": "ServiceAccount", "name": "sa", "namespace": "n"}],
                }
            ],
        }
        return rows.get(resource.split(".")[0], [])

    def changes(self, since: int, resources: object = ()) -> "tuple[list[Any], int]":
        if since > 0:
            raise ApiError({"code": 410})
        return [], 1


def test_aggregated_rules_and_service_accounts_count() -> None:
    """A role has the rules of those that it selects; a binding in a namespace holds there only; reasons name both."""
    authorizer = Authorizer(_Roles())  # type: ignore[arg-type]
    user = User("system:serviceaccount:n:sa")
    allowed, why = authorizer.allowed(user, Access("get", "x", "y", "", "n"))
    assert allowed
    assert why == 'RBAC: allowed by RoleBinding "b/n" of ClusterRole "sum" to ServiceAccount "sa/n"'
    assert authorizer.allowed(user, Access("get", "x", "y", "", "other")) == (False, "")
    assert authorizer.covers(user, "n", [{"verbs": ["get"], "apiGroups": ["x"], "resources": ["y"]}])
    assert not authorizer.covers(user, "n", [{"verbs": ["list"], "apiGroups": ["x"], "resources": ["y"]}])
