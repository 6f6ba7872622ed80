"""Compliance checks on your own cluster, without an agent. Reads by get and list requests only; writes nothing to the estate.

examples:
  itbench audit --profile cis-k8s --kubeconfig ~/.kube/config
  itbench audit --profile cis-k8s --kubeconfig F --format html,sarif,oscal --out audit-2026 --fail-on high
  itbench audit --profile cis-k8s --print-access | kubectl apply -f -     # the rights that the auditor needs
  itbench audit --evaluate audit-2026 --format json                      # the verdicts once more, without the cluster
  itbench audit --list

exit codes: 0 all in scope assessed and the gate held; 1 a violation at or above --fail-on; 2 bad usage;
3 the estate does not answer, or something could not be assessed
"""

import argparse
import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from itbench.cli.common import add_json, dump, table
from itbench.core.errors import UsageError

if TYPE_CHECKING:
    from itbench.audit.facts import Facts
    from itbench.report.verdicts import AuditReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--profile", default="", metavar="P", help="which controls, such as cis-k8s or cis-k8s@1.12")
    parser.add_argument(
        "--kubeconfig", default="", metavar="F", help="the estate (default: KUBECONFIG, ~/.kube/config)"
    )
    parser.add_argument("--context", default="", metavar="C", help="context of the kubeconfig")
    parser.add_argument("--evaluate", default="", metavar="DIR", help="judge facts that were collected earlier")
    parser.add_argument("--exceptions", default="", metavar="X", help="file of approved exceptions")
    parser.add_argument("--fail-on", default="", choices=("low", "medium", "high"), help="exit 1 on such a violation")
    parser.add_argument(
        "--format", default="", metavar="F,…", help="html, json, sarif, oscal, csv; html when --out is given"
    )
    parser.add_argument("--out", default="", metavar="DIR", help="folder for documents and evidence")
    parser.add_argument("--all", action="store_true", help="print every record, not only what needs attention")
    parser.add_argument("--list", action="store_true", help="print the profiles")
    parser.add_argument("--show", action="store_true", help="print the controls of the profile")
    parser.add_argument("--print-access", action="store_true", help="print the ClusterRole that an auditor needs")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Collect, judge, print, write; gives the exit code."""
    from itbench.audit import access, exceptions, facts, publish
    from itbench.audit.assess import assess, policy_sha256
    from itbench.policy.controls.catalog import PROFILES
    from itbench.report.verdicts import exit_code

    if arguments.list:
        rows = [(each.key, str(len(each.controls)), each.title) for each in PROFILES.values()]
        print(table(rows, ("PROFILE", "CONTROLS", "WHAT")))
        return 0
    formats = publish.chosen(arguments.format or ("html" if arguments.out else ""))
    if formats and not (arguments.out or arguments.evaluate):
        raise UsageError("--format needs a folder", seen=arguments.format, hint="add --out DIR")
    if arguments.evaluate:
        collected, kept = facts.read(Path(arguments.evaluate))
        profile = access.profile(arguments.profile or kept["name"])
    else:
        profile = access.profile(_named(arguments))
        if arguments.show:
            print(table(((c.id, c.severity, c.title) for c in profile.controls), ("CONTROL", "SEVERITY", "ASKS FOR")))
            return 0
        if arguments.print_access:
            print(access.cluster_role(profile), end="")
            return 0
    waivers = exceptions.read(arguments.exceptions, (control.id for control in profile.controls))
    if not arguments.evaluate:
        collected = _collect(arguments, profile.resources)
    report = assess(profile, collected, waivers)
    out = Path(arguments.out or arguments.evaluate or ".")
    if arguments.out:
        facts.write(collected, out, {"name": profile.name, "version": profile.version, "sha256": policy_sha256()})
    written = publish.publish(report, formats, out)
    code = exit_code(report.verdicts, arguments.fail_on)
    _print(arguments, report, written, code)
    return code


def _named(arguments: argparse.Namespace) -> str:
    if not arguments.profile:
        raise UsageError("no profile named", expected="--profile cis-k8s", hint="see itbench audit --list")
    return str(arguments.profile)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _collect(arguments: argparse.Namespace, resources: tuple[str, ...]) -> "Facts":
    from itbench.audit import access
    from itbench.audit.collect import collect

    client, about = access.connect(arguments.kubeconfig, arguments.context)
    try:
        return collect(client, resources, _now, about)
    finally:
        client.close()


def _print(arguments: argparse.Namespace, report: "AuditReport", written: list[Path], code: int) -> None:
    from itbench.report.verdicts import compliance, control_state, counts, coverage

    if arguments.json:
        records = [verdict.model_dump(mode="json") | {"id": verdict.id} for verdict in report.verdicts]
        summary = {"counts": counts(report.verdicts), "compliance": compliance(report.verdicts)}
        files = [str(path) for path in written]
        print(
            dump({**summary, "coverage": coverage(report.verdicts), "exit": code, "files": files, "verdicts": records})
        )
        return
    rows = []
    for text in report.controls:
        own = [verdict for verdict in report.verdicts if verdict.control.id == text.id]
        bad = sum(verdict.state == "not_satisfied" for verdict in own)
        named = sum(bool(verdict.subject.name) for verdict in own)
        rows.append((text.id, text.severity, control_state(own).replace("_", " "), f"{bad}/{named}", text.title))
    print(table(rows, ("CONTROL", "SEVERITY", "STATE", "VIOLATIONS", "ASKS FOR")))
    _print_records(arguments, report)
    (good, counted), (assessed, scope) = compliance(report.verdicts), coverage(report.verdicts)
    share = f" ({100 * good / counted:.0f} %)" if counted else ""
    print(f"\n{good} of {counted} subjects comply{share}; {assessed} of {scope} in scope were assessed; ", end="")
    print(f"{len(report.manual)} controls are for people to assess")
    for path in written:
        print(f"wrote {path}")


def _print_records(arguments: argparse.Namespace, report: "AuditReport") -> None:
    wanted = None if arguments.all else ("not_satisfied", "not_assessed", "unsupported", "accepted")
    rows = [
        (v.control.id, v.state.replace("_", " "), v.subject.text, (v.observed or v.reason)[:100])
        for v in report.verdicts
        if wanted is None or v.state in wanted
    ]
    if rows:
        print("\n" + table(rows, ("CONTROL", "STATE", "SUBJECT", "OBSERVED")))
