"""What a proof claims, and when a claim holds."""

from typing import Any

import pytest

from itbench.library.store import Library
from itbench.run.jobs import Job
from itbench.run.known import vocabulary
from itbench.run.pool import Outcome
from itbench.run.prove import Claim, claims, judge, narrowed

SRE_1 = Library((), vocabulary()).scenario("sre-1").scenario


def result(outcome: str, *failed: str, cause: str = "checks", detail: str = "") -> dict[str, Any]:
    """A result document in which these checks failed."""
    checks = [{"kind": kind, "name": kind, "passed": False} for kind in failed]
    return {"outcome": outcome, "cause": cause, "detail": detail, "checks": checks}


def test_every_repair_and_decoy_is_a_claim_beside_doing_nothing_destroying_and_reverting() -> None:
    """The first claim is the one that stages; all claims of a scenario share its seed."""
    found = claims(SRE_1, 3, ())
    assert [claim.job.agent for claim in found] == [
        "nop", "saboteur", "oracle:1", "oracle:2", "decoy:1", "decoy:2", "decoy:3", "nop",
    ]  # fmt: skip
    assert {claim.job.seed for claim in found} == {3}
    assert found[-1].job.kind == "revert"


def test_claims_can_be_narrowed_by_their_text() -> None:
    """Any of the texts selects, in any case; no text selects all."""
    found = claims(SRE_1, 0, ())
    assert narrowed(found, ()) == found
    assert [claim.job.agent for claim in narrowed(found, ("REVERT", "decoy 2"))] == ["decoy:2", "nop"]
    assert narrowed(found, ("nosuch",)) == []


@pytest.mark.parametrize(
    ("document", "held"),
    [
        (result("fail", "slo", "alerts"), True),
        (result("fail", "alerts"), False),
        (result("pass"), False),
        (result("fail", "slo", cause="agent_crash", detail="step 1 failed"), False),
        (result("invalid", "slo", cause="unknown", detail="why"), False),
        (None, False),
    ],
)
def test_a_decoy_must_fail_by_the_check_it_names(document: dict[str, Any] | None, held: bool) -> None:
    """Failing by another check only, passing, or not finishing does not do."""
    claim = Claim("sre-1", "decoy 1", Job(scenario="sre-1", agent="decoy:1"), outcome="fail", caught_by="slo")
    assert judge(claim, Outcome(claim.job, document, error="gone")).held is held


def test_a_failed_revert_says_what_is_not_as_it_was() -> None:
    """The reason stands beside the verdict."""
    claim = Claim("sre-1", "revert", Job(scenario="sre-1", agent="nop", kind="revert"), outcome="pass")
    shown = judge(claim, Outcome(claim.job, result("fail", "baseline", detail="alerts firing: A")))
    assert (shown.held, shown.seen) == (False, "fail by baseline (alerts firing: A)")
