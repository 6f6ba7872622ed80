"""The verb on an embedded control plane over HTTPS, with an identity that may list and nothing else."""

import asyncio
import json

import yaml

from itbench.audit.access import cluster_role, profile
from itbench.cli.main import _run_verb, main
from itbench.core.ids import Ids
from itbench.kube.api import serve
from itbench.kube.plane import ControlPlane
from itbench.world.estate import World
from itbench.world.pace import WorldPacer

AUDITOR = "auditor"


def grant(client, resources):
    role = yaml.safe_load(cluster_role(profile("cis-k8s")))
    role["rules"] = [
        {**rule, "resources": [name for name in rule["resources"] if name not in resources]} for rule in role["rules"]
    ]
    client.create("clusterroles.rbac.authorization.k8s.io", role)
    meta, subject = {"name": "audit"}, {"kind": "User", "name": AUDITOR, "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "ClusterRole", "name": "itbench-audit", "apiGroup": "rbac.authorization.k8s.io"}
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
    binding = {**kind, "metadata": meta, "subjects": [subject], "roleRef": reference}
    client.create("clusterrolebindings.rbac.authorization.k8s.io", binding)


async def audited(estate, folder, *options, without=()):
    """Runs the verb beside the server; returns (exit code, what the auditor asked)."""
    world = World.create(None, seed=0, nodes=1)
    plane: ControlPlane = world.planes["main"]
    client = plane.client("stager", "system:stager")
    for resource, obj in estate:
        client.create(resource, obj)
    grant(client, without)
    world.settle()
    server = await serve(plane, WorldPacer(world, "stepped"), world.door())
    try:
        file = folder / "kubeconfig"
        file.write_text(server.kubeconfig(AUDITOR, ()))
        words = ["--profile", "cis-k8s", "--kubeconfig", str(file), "--out", str(folder / "out"), *options]
        code = await asyncio.to_thread(_run_verb, "audit", words)  # `main` sets signal handlers: not in a thread
    finally:
        await server.close()
    return code, [record for record in plane.audit if record.user == AUDITOR]


def found(folder):
    document = json.loads((folder / "out" / "audit.json").read_text())
    keys = [(v["control"]["id"], "/".join(filter(None, (v["subject"]["kind"], v["subject"]["namespace"], v["subject"]["name"]))))
            for v in document["verdicts"]]  # fmt: skip
    return dict(zip(keys, [v["state"] for v in document["verdicts"]], strict=True))


async def test_the_verb_finds_what_is_there_and_only_reads(estate, expected, tmp_path, capsys):
    code, asked = await audited(estate, tmp_path, "--format", "html,json,sarif,oscal,csv", "--fail-on", "high")
    assert code == 1
    assert {key: found(tmp_path).get(key) for key in expected} == expected
    assert asked and {record.verb for record in asked} <= {"get", "list"}
    assert not [record for record in asked if record.resource == "secrets" or record.code >= 400]
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {
        "report.html",
        "audit.sarif",
        "assessment-results.json",
        "assessment-plan.json",
        "audit.csv",
        "facts",
    }
    assert "Deployment/shop/spy" in capsys.readouterr().out


async def test_missing_rights_give_exit_code_3_and_no_pass(estate, tmp_path, capsys):
    code, _ = await audited(estate, tmp_path, "--format", "json", without=("deployments", "cronjobs"))
    states = found(tmp_path)
    assert code == 3 and states[("5.2.3", "Cluster")] == "not_assessed"
    assert "deployments.apps: 403 Forbidden" in capsys.readouterr().out


async def test_verdicts_are_repeated_from_the_folder_without_the_cluster(estate, tmp_path, capsys):
    await audited(estate, tmp_path, "--format", "json")
    first = (tmp_path / "out" / "audit.json").read_bytes()
    assert main(["audit", "--evaluate", str(tmp_path / "out"), "--format", "json"]) == 0
    assert (tmp_path / "out" / "audit.json").read_bytes() == first
    capsys.readouterr()


def test_usage_errors_are_one_line_with_code_2(tmp_path, capsys):
    for words in (
        ["audit"],
        ["audit", "--profile", "cis-k9s"],
        ["audit", "--profile", "cis-k8s@9"],
        ["audit", "--profile", "cis-k8s", "--kubeconfig", str(tmp_path / "none")],
        ["audit", "--profile", "cis-k8s", "--format", "html"],
        ["audit", "--profile", "cis-k8s", "--format", "docx", "--out", str(tmp_path)],
        ["audit", "--evaluate", str(tmp_path)],
    ):
        assert main(words) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_an_estate_that_does_not_answer_is_exit_code_3(tmp_path, capsys):
    server = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [server],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(document))
    assert main(["audit", "--profile", "cis-k8s", "--kubeconfig", str(file)]) == 3
    assert "does not answer" in capsys.readouterr().err


def test_a_fresh_control_plane_has_no_role_or_binding_to_complain_about():
    plane = ControlPlane(ids=Ids(0))
    from itbench.audit.assess import assess
    from itbench.audit.collect import collect

    wanted = profile("cis-k8s")
    facts = collect(plane.client("audit", "system:auditor"), wanted.resources, lambda: "2026-11-30T12:00:00Z", {})
    bad = {v.control.id for v in assess(wanted, facts).verdicts if v.state == "not_satisfied"}
    assert not {number for number in bad if number.startswith("5.1.")} - {"5.1.5"}
