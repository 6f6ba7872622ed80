"""A trial as the run room would describe it."""

from math import exp

import pytest

from itbench.report.model import ActionView, AlertView, CheckView, Point, Slo, TrialView
from itbench.report.verdicts import (
    AuditReport,
    ControlId,
    ControlText,
    Engine,
    EvidenceRef,
    ExceptionRef,
    SubjectId,
    Verdict,
)


def points(worst: float, slow: float, begin: float, end: float) -> list[Point]:
    """A journey that falls at `begin` and recovers around `end`."""
    found = []
    for second in range(0, 1500, 5):
        depth = 0.0
        if begin <= second < end:
            depth = 1.0 - exp(-(second - begin) / 20.0)
        elif second >= end:
            depth = exp(-(second - end) / 25.0)
        ripple = 0.003 * ((second * 7919) % 11) / 11
        dead = 700 <= second < 720 and worst < 0.1
        ok = None if dead else max(0.0, 1.0 - ripple - (1.0 - worst) * depth)
        found.append(Point(float(second), 30.0, ok, None if dead else 0.08 * (1 + ripple * 40) + slow * depth))
    return found


def build_view(outcome: str = "fail") -> TrialView:
    """An incident with everything that a report can show."""
    checks = (
        CheckView("slo buy", True, "99.6% good, p99 210 ms over 5m", "≥ 99% good, p99 ≤ 800 ms, 5m"),
        CheckView("alerts clear", True, "none fires", "none"),
        CheckView("challenge: replay trigger", outcome == "pass", "36% good 300 s after the replay", "≥ 99% good"),
        CheckView("collateral", True, "nothing protected changed", "nothing protected changes"),
        CheckView(
            "diagnosis",
            True,
            "deployment/shop/frontend: retry-amplification",
            "deployment/shop/frontend: retry-amplification",
        ),
    )
    commands = [
        (430, "kubectl", "get pods -n shop -o wide", True),
        (435, "promql", 'sum by (service) (rate(http_requests_total{code=~"5.."}[1m]))', True),
        (445, "kubectl", "describe deployment checkout -n shop", True),
        (470, "logs", '{app="checkout"} |= "deadline exceeded"', True),
        (510, "kubectl", "rollout restart deployment/checkout -n shop", True),
        (560, "kubectl", "scale deployment/chekout -n shop --replicas=4", False),
        (575, "kubectl", "scale deployment/checkout -n shop --replicas=4", True),
        (640, "promql", "histogram_quantile(0.99, sum by (le) (rate(latency_seconds_bucket[1m])))", True),
        (760, "kubectl", 'patch configmap frontend-config -n shop --type merge -p \'{"data":{"RETRIES":"0"}}\'', True),
        (790, "kubectl", "rollout restart deployment/frontend -n shop", True),
        (905, "submit", "root cause: deployment/shop/frontend retry-amplification", True),
    ]
    return TrialView(
        scenario="sre-12",
        title="Checkout stays down after a ten-second CPU cut",
        agent="heuristic",
        seed=0,
        outcome=outcome,
        cause="" if outcome == "pass" else "check_failed",
        checks=checks,
        metrics={"time_to_mitigate_s": 410.0, "steps": 11, "harm_requests": 5231, "cost_usd": None, "diagnosis_credit": 0.75},
        phases=(
            ("baseline", 0.0), ("fault", 180.0), ("symptom", 260.0), ("hand-over", 420.0), ("submit", 905.0),
            ("challenge", 1205.0),
        ),
        journeys={"buy": points(0.04, 9.5, 190.0, 800.0), "browse": points(0.72, 1.4, 200.0, 790.0)},
        slos={"buy": Slo(0.99, 0.8), "browse": Slo(0.99, 0.5)},
        alerts=(
            AlertView("HighRequestErrorRate", 250.0, 860.0, "service checkout"),
            AlertView("HighRequestLatency", 245.0, 850.0, "service checkout"),
            AlertView("HighRequestLatency", 262.0, 845.0, "service frontend"),
            AlertView("JourneyBudgetBurn", 320.0, 900.0, "journey buy"),
            AlertView("KubeDeploymentReplicasMismatch", 1240.0, None, "deployment checkout"),
        ),
        actions=tuple(ActionView(float(t), tool, text, ok) for t, tool, text, ok in commands),
        recovered_at=835.0,
        page="PagerDuty #48121: checkout errors and latency since 08:04",
        submission='{"root_causes": [{"entity": "deployment/shop/frontend", "mechanism": "retry-amplification"}]}',
        evidence=(("kubectl get pods at hand-over", "NAME         READY   STATUS\ncheckout-7d9  1/1     Running"),),
    )  # fmt: skip


@pytest.fixture
def view() -> TrialView:
    return build_view()


@pytest.fixture
def audit() -> AuditReport:
    """An audit with a record in each of five states."""
    rows = {
        "5.2.2": ("not_assessed", "pods: 403 Forbidden: cannot list pods"),
        "5.2.3": ("not_satisfied", "hostPID: true"),
        "5.2.4": ("satisfied", "hostIPC is not set"),
        "5.2.5": ("accepted", "hostNetwork: true"),
        "5.2.6": ("not_applicable", "population 0, all lists complete"),
    }
    engine = Engine(name="itbench", version="0")
    ref = EvidenceRef(
        path="facts/pods.json", sha256="a" * 64, collected_at="2026-11-30T12:00:00Z", collector="get pods", identity="a"
    )
    waiver = ExceptionRef(reason="agent of the node vendor", approver="ciso", expires="2027-01-01")
    verdicts = [
        Verdict(
            control=ControlId(framework="cis-k8s", version="1.12", id=number),
            subject=SubjectId(estate="e", kind="Pod", namespace="shop", name="p"),
            state=state,
            severity="high",
            observed=text,
            reason=text,
            evidence=(ref,),
            engine=engine,
            policy_sha256="b" * 64,
            exception=waiver if state == "accepted" else None,
        )
        for number, (state, text) in rows.items()
    ]
    words = {"severity": "high", "expected": "it is not so", "why": "it is bad", "fix": "change it"}
    return AuditReport(
        profile="cis-k8s@1.12",
        title="Kubernetes",
        framework="cis-k8s",
        version="1.12",
        estate="e",
        started="2026-11-30T12:00:00Z",
        ended="2026-11-30T12:00:05Z",
        tool=engine,
        profile_sha256="c" * 64,
        controls=tuple(ControlText(id=number, title="t", related=("NIST AC-6",), **words) for number in rows),
        verdicts=tuple(verdicts),
        evidence=(ref,),
    )
