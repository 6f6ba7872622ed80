"""metrics.k8s.io from the node door: what `kubectl top` and autoscalers read; called by `server`."""

from aiohttp import web

from itbench.kube.api import views
from itbench.kube.api.answers import partial_list
from itbench.kube.api.door import Call
from itbench.kube.api.pods import nodes_of
from itbench.kube.client import Obj, Objs
from itbench.kube.selectors import parse_labels
from itbench.kube.status import Problem, failure
from itbench.kube.store import Entry

GROUP = "metrics.k8s.io"


def _all(call: Call) -> Objs:
    nodes = nodes_of(call)
    if call.target.plural == "nodes":
        return nodes.node_metrics()
    return nodes.pod_metrics(call.target.namespace)


def read(call: Call) -> web.Response:
    """GET of the metrics of one or all nodes or pods."""
    resource, target = call.resource, call.target
    found = _all(call)
    if target.name:
        return call.answer(_one(call, found))
    selector = parse_labels(call.query.get("labelSelector", ""))
    found = [obj for obj in found if selector.matches(obj["metadata"].get("labels"))]
    meta: Obj = {}
    if call.form.kind == "table":
        entries = [Entry(resource.name, obj, 0) for obj in found]
        return call.answer(views.table(call, resource, entries, meta))
    if call.form.kind == "partial":
        return call.answer(partial_list(found, meta, call.form.version))
    return call.answer(
        {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": meta, "items": found}
    )


def _one(call: Call, found: Objs) -> Obj:
    target = call.target
    for obj in found:
        if obj["metadata"]["name"] == target.name:
            return obj
    kind = "nodemetrics" if target.plural == "nodes" else "podmetrics"
    full = f"{target.namespace}/{target.name}" if target.namespace else target.name
    text = f'{kind}.{GROUP} "{full}" not found'
    raise failure(404, "NotFound", text, Problem(full, GROUP, kind))
