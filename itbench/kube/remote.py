"""The narrow client protocol over HTTP, for any real cluster behind a kubeconfig; called by audit and the attached environment.

The only place that imports the `kubernetes` package (lazily): it reads kubeconfigs with all their ways to authenticate.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from itbench.core.errors import EnvironmentFault
from itbench.kube.client import ApiError, Changes, Obj, Objs, PatchKind, Propagation
from itbench.kube.remote_watch import Follower

_PATCH_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Served:
    """A resource as discovery describes it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]

    @property
    def api_version(self) -> str:
        """`apps/v1` or `v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version


class Connection:
    """HTTP to one cluster: address, trust and credentials of a kubeconfig's context."""

    def __init__(self, kubeconfig: str = "", context: str = "", timeout_s: float = 30.0) -> None:
        from kubernetes import client, config

        try:
            self._api: Any = config.new_client_from_config(kubeconfig or None, context or None)  # type: ignore[no-untyped-call]
        except (config.ConfigException, OSError) as error:
            raise EnvironmentFault(
                "cannot read the kubeconfig", seen=kubeconfig or "default", expected=str(error)
            ) from error
        self._host = self._api.configuration.host.rstrip("/")
        self._timeout_s = timeout_s
        self._errors = (client.ApiException, OSError)

    def request(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json", accept: str = ""
    ) -> Any:
        """One request -> decoded JSON (text for other content); raises ApiError, or EnvironmentFault without an answer."""
        response = self.open(method, path, body, content_type=content_type, accept=accept)
        try:
            data = response.data
        finally:
            response.release_conn()
        answer = json.loads(data) if data[:1] in (b"{", b"[") else data.decode(errors="replace")
        if response.status >= 400:
            raise ApiError(answer if isinstance(answer, dict) and "code" in answer else _bare(response.status, answer))
        return answer

    def open(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "",
        timeout_s: float | None = None,
    ) -> Any:
        """The raw urllib3 response, not read yet: for watches."""
        from urllib3.exceptions import HTTPError

        headers = {"Accept": accept or "application/json", "User-Agent": "itbench"}
        for auth in self._api.configuration.auth_settings().values():
            if auth.get("in") == "header" and auth.get("value"):
                headers[auth["key"]] = auth["value"]
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            return self._api.rest_client.pool_manager.request(
                method,
                self._host + path,
                body=None if body is None else json.dumps(body),
                headers=headers,
                preload_content=False,
                timeout=timeout_s or self._timeout_s,
                retries=False,
            )
        except (HTTPError, OSError) as error:
            raise EnvironmentFault("the cluster does not answer", seen=self._host, expected=str(error)) from error

    def close(self) -> None:
        """Close pooled connections."""
        self._api.rest_client.pool_manager.clear()


def _bare(code: int, text: Any) -> Obj:
    return {"kind": "Status", "status": "Failure", "message": str(text).strip()[:500], "reason": "", "code": code}


class RemoteClient:
    """`itbench.kube.client.Client` on a real API server.

    Args:
        kubeconfig: path; empty for the default places.
        context: its context; empty for the current one.
        manager: field manager of writes.
    """

    def __init__(
        self, kubeconfig: str = "", *, context: str = "", manager: str = "itbench", timeout_s: float = 30.0
    ) -> None:
        self._http = Connection(kubeconfig, context, timeout_s)
        self._manager = manager
        self._served: dict[str, Served] = {}
        self._follower: Follower | None = None

    def close(self) -> None:
        """End watches and connections."""
        if self._follower is not None:
            self._follower.close()
        self._http.close()

    def raw(self, path: str) -> Any:
        """GET any path: `/version`, `/api/v1/nodes/n/proxy/configz`."""
        return self._http.request("GET", path)

    def post(self, path: str, body: Obj) -> Any:
        """POST to any path: access reviews and other kinds that are not stored."""
        return self._http.request("POST", path, body)

    def resources(self) -> dict[str, Served]:
        """All served resources by `plural.group`, each in its preferred version."""
        if not self._served:
            self._discover("", "v1", "/api/v1")
            for group in self.raw("/apis")["groups"]:
                versions = [group["preferredVersion"], *group["versions"]]
                for version in dict.fromkeys(row["version"] for row in versions):
                    self._discover(group["name"], version, f"/apis/{group['name']}/{version}")
        return self._served

    def _discover(self, group: str, version: str, path: str) -> None:
        try:
            rows = self.raw(path)["resources"]
        except ApiError:
            return  # an aggregated API that is down hides its own group only
        for row in rows:
            name = f"{row['name']}.{group}" if group else row["name"]
            if "/" not in row["name"]:
                served = Served(group, version, row["name"], row["kind"], row["namespaced"], tuple(row["verbs"]))
                self._served.setdefault(name, served)

    def _find(self, resource: str) -> Served:
        found = self.resources().get(resource)
        if found is None:
            message = "the server could not find the requested resource"
            raise ApiError(_bare(404, f"{message}: {resource}") | {"reason": "NotFound"})
        return found

    def path(self, resource: str, namespace: str = "", name: str = "", subresource: str = "", **query: str) -> str:
        """The URL path of a collection or object."""
        served = self._find(resource)
        parts = ["apis", served.group, served.version] if served.group else ["api", served.version]
        if namespace and served.namespaced:
            parts += ["namespaces", namespace]
        parts += [part for part in (served.plural, name, subresource) if part]
        tail = urlencode({key: value for key, value in query.items() if value})
        return "/" + "/".join(quote(part) for part in parts) + (f"?{tail}" if tail else "")

    def get(self, resource: str, name: str, namespace: str = "") -> Obj:
        """One object."""
        found: Obj = self._http.request("GET", self.path(resource, namespace, name))
        return found

    def list(self, resource: str, namespace: str = "", *, labels: str = "", fields: str = "") -> Objs:
        """All objects, page by page, sorted by namespace and name."""
        return self.page(resource, namespace, labels=labels, fields=fields)[0]

    def page(self, resource: str, namespace: str = "", *, labels: str = "", fields: str = "") -> tuple[Objs, str]:
        """(objects, resourceVersion of the list)."""
        served, items, more = self._find(resource), [], ""
        while True:
            query = {"labelSelector": labels, "fieldSelector": fields, "limit": str(_PAGE), "continue": more}
            answer = self._http.request("GET", self.path(resource, namespace, **query))
            items += [{"apiVersion": served.api_version, "kind": served.kind, **item} for item in answer["items"] or ()]
            more = answer["metadata"].get("continue", "")
            if not more:
                break
        items.sort(key=lambda o: (o["metadata"].get("namespace", ""), o["metadata"]["name"]))
        return items, answer["metadata"].get("resourceVersion", "0")

    def changes(self, since: int, resources: Collection[str] = ()) -> tuple[Changes, int]:
        """What watches have brought since revision `since`; the first call for a set of resources starts them.

        Raises:
            ApiError: 410, another consumer asked with other resources or an older revision; begin again with -1.
        """
        names = tuple(sorted(resources or [n for n, s in self.resources().items() if "watch" in s.verbs]))
        if since < 0 or self._follower is None or self._follower.names != names:
            if since >= 0:
                raise ApiError(_bare(410, f"too old resource version: {since}") | {"reason": "Expired"})
            if self._follower is not None:
                self._follower.close()
            self._follower = Follower(self, self._http, names)
        return self._follower.take(since)

    def create(self, resource: str, obj: Obj, namespace: str = "") -> Obj:
        """Create; the namespace defaults to the object's own."""
        space = namespace or obj.get("metadata", {}).get("namespace", "")
        made: Obj = self._http.request("POST", self.path(resource, space, fieldManager=self._manager), obj)
        return made

    def update(self, resource: str, obj: Obj, *, subresource: str = "") -> Obj:
        """Replace an object or one of its subresources."""
        meta = obj["metadata"]
        path = self.path(resource, meta.get("namespace", ""), meta["name"], subresource, fieldManager=self._manager)
        put: Obj = self._http.request("PUT", path, obj)
        return put

    def patch(
        self, resource: str, name: str, namespace: str, patch: Any, *, kind: PatchKind = "merge", subresource: str = ""
    ) -> Obj:
        """Patch; `kind="apply"` is server-side apply, forced."""
        force = "true" if kind == "apply" else ""
        path = self.path(resource, namespace, name, subresource, fieldManager=self._manager, force=force)
        patched: Obj = self._http.request("PATCH", path, patch, content_type=_PATCH_TYPES[kind])
        return patched

    def delete(
        self,
        resource: str,
        name: str,
        namespace: str = "",
        *,
        grace_s: int | None = None,
        propagation: Propagation = "Background",
        uid: str = "",
    ) -> None:
        """Delete one object."""
        options: Obj = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        if uid:
            options["preconditions"] = {"uid": uid}
        self._http.request("DELETE", self.path(resource, namespace, name), options)

    def evict(self, name: str, namespace: str) -> None:
        """policy/v1 Eviction of a pod."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
        self._http.request("POST", self.path("pods", namespace, name, "eviction"), body)
