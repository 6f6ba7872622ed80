"""Jobs end once, CronJobs start on time."""

from itertools import islice
from typing import Any

import pytest
from fake_kubelet import FakeKubelets, Obj, cluster
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.clock import parse_rfc3339, rfc3339
from itbench.kube.controllers.cron import Schedule
from itbench.kube.controllers.job import format_indexes, parse_indexes


def job(name: str = "j", image: str = "done", **spec: Any) -> Obj:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": image}]}}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": template, **spec}}


def by_image(pod: Obj) -> str:
    return str(pod["spec"]["containers"][0]["image"]).split(":")[0]


def conditions(k: FakeKubelets, name: str = "j") -> list[tuple[str, str]]:
    return [
        (c["type"], c["reason"]) for c in k.client.get("jobs.batch", name, "default")["status"].get("conditions", [])
    ]


def test_a_job_completes_with_the_conditions_and_counts_of_a_real_one() -> None:
    k = cluster(verdict=by_image)
    k.client.create("jobs.batch", job(completions=3, parallelism=2))
    k.settle()
    assert conditions(k) == [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
    status = k.client.get("jobs.batch", "j", "default")["status"]
    kept = {key: value for key, value in status.items() if key not in ("conditions", "startTime", "completionTime")}
    assert kept == {"ready": 0, "succeeded": 3, "terminating": 0, "uncountedTerminatedPods": {}}
    assert all("finalizers" not in p["metadata"] for p in k.client.list("pods", "default"))
    assert [e["message"] for e in k.client.list("events", "default") if e["reason"] == "Completed"] == ["Job completed"]


def test_a_failing_job_backs_off_ten_seconds_and_gives_up_at_its_limit() -> None:
    k = cluster(verdict=by_image)
    k.client.create("jobs.batch", job(image="fail", backoffLimit=1))
    k.settle()
    assert len(k.client.list("pods", "default")) == 1
    k.advance(9.0)
    assert len(k.client.list("pods", "default")) == 1
    k.advance(11.0)
    assert len(k.client.list("pods", "default")) == 2
    assert conditions(k) == [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")]
    assert k.client.get("jobs.batch", "j", "default")["status"]["failed"] == 2


def test_an_indexed_job_runs_every_index_once() -> None:
    k = cluster(verdict=by_image)
    k.client.create("jobs.batch", job(completions=4, parallelism=2, completionMode="Indexed"))
    k.settle()
    assert k.client.get("jobs.batch", "j", "default")["status"]["completedIndexes"] == "0-3"
    hosts = sorted(p["spec"]["hostname"] for p in k.client.list("pods", "default"))
    assert hosts == ["j-0", "j-1", "j-2", "j-3"]


def test_a_success_policy_ends_a_job_while_indexes_are_left() -> None:
    k = cluster(verdict=lambda pod: "done" if pod["spec"].get("hostname") == "j-1" else "ready")
    policy = {"rules": [{"succeededIndexes": "0"}, {"succeededIndexes": "1-2", "succeededCount": 1}]}
    k.client.create(
        "jobs.batch", job(completions=3, parallelism=3, completionMode="Indexed", successPolicy=policy, backoffLimit=0)
    )
    k.advance(60.0)
    assert conditions(k) == [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")]
    found = k.client.get("jobs.batch", "j", "default")["status"]
    assert found["conditions"][0]["message"] == "Matched rules at index 1"
    assert (found["completedIndexes"], found["succeeded"], found.get("active")) == ("1", 1, None)


def test_a_success_policy_that_holds_is_the_reason_even_when_everything_succeeded() -> None:
    k = cluster(verdict=by_image)
    policy = {"rules": [{"succeededIndexes": "0,1"}]}
    k.client.create("jobs.batch", job(completions=2, parallelism=2, completionMode="Indexed", successPolicy=policy))
    k.settle()
    assert conditions(k) == [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")]


def test_with_a_limit_for_each_index_every_index_backs_off_for_itself() -> None:
    k = cluster(verdict=lambda pod: "fail" if pod["spec"]["hostname"] in ("j-1", "j-3") else "done")
    k.client.create("jobs.batch", job(completions=4, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1))
    k.advance(30.0)
    found = k.client.get("jobs.batch", "j", "default")["status"]
    assert (found["completedIndexes"], found["failedIndexes"], found["failed"]) == ("0,2", "1,3", 4)
    assert ("Failed", "FailedIndexes") in conditions(k)
    notes = [p["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] for p in k.client.list("pods")]
    assert sorted(notes) == ["0", "0", "0", "0", "1", "1"]


def test_a_job_takes_back_an_orphan_and_lets_a_stranger_go_without_finalizer() -> None:
    k = cluster(verdict=by_image)
    k.client.create("jobs.batch", job(image="ready", completions=2, parallelism=2))
    k.settle()
    first, second = k.client.list("pods", "default")
    k.client.patch("pods", first["metadata"]["name"], "default", {"metadata": {"ownerReferences": None}})
    k.settle()
    again = k.client.get("pods", first["metadata"]["name"], "default")["metadata"]
    assert again["ownerReferences"][0]["name"] == "j" and again["finalizers"]
    labels = dict.fromkeys(second["metadata"]["labels"], None)
    k.client.patch("pods", second["metadata"]["name"], "default", {"metadata": {"labels": labels}})
    k.settle()
    stranger = k.client.get("pods", second["metadata"]["name"], "default")["metadata"]
    assert "ownerReferences" not in stranger and "finalizers" not in stranger
    assert len(k.client.list("pods", "default")) == 3


def test_a_job_over_its_deadline_fails_and_its_pods_go() -> None:
    k = cluster(verdict=by_image)
    k.client.create("jobs.batch", job(image="ready", activeDeadlineSeconds=30))
    k.advance(29.0)
    assert conditions(k) == []
    k.advance(31.0)
    assert conditions(k) == [("FailureTarget", "DeadlineExceeded"), ("Failed", "DeadlineExceeded")]
    assert k.client.list("pods", "default") == []


def test_a_suspended_job_waits_and_resumes() -> None:
    k = cluster(verdict=by_image)
    k.client.create("jobs.batch", job(suspend=True))
    k.settle()
    assert k.client.list("pods", "default") == [] and conditions(k) == [("Suspended", "JobSuspended")]
    k.client.patch("jobs.batch", "j", "default", {"spec": {"suspend": False}})
    k.settle()
    assert conditions(k)[-1] == ("Complete", "CompletionsReached")


def test_a_finished_job_goes_after_its_ttl_with_its_pods() -> None:
    k = cluster(verdict=by_image)
    k.client.create("jobs.batch", job(ttlSecondsAfterFinished=60))
    k.advance(59.0)
    assert len(k.client.list("jobs.batch", "default")) == 1
    k.advance(61.0)
    assert k.client.list("jobs.batch", "default") == [] and k.client.list("pods", "default") == []


def cron(**spec: Any) -> Obj:
    meta = {"name": "cj", "namespace": "default"}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": meta,
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {"spec": job(image=spec.pop("image", "done"))["spec"]},
            **spec,
        },
    }


def test_a_cron_job_starts_on_the_minute_and_keeps_its_history_short() -> None:
    k = cluster(verdict=by_image)
    k.client.create("cronjobs.batch", cron(successfulJobsHistoryLimit=2))
    k.advance(59.0)
    assert k.client.list("jobs.batch", "default") == []
    k.advance(330.0)
    jobs = k.client.list("jobs.batch", "default")
    stamp = "batch.kubernetes.io/cronjob-scheduled-timestamp"
    assert [parse_rfc3339(j["metadata"]["annotations"][stamp]) for j in jobs] == [240.0, 300.0]
    assert jobs[0]["metadata"]["name"] == f"cj-{29470080 + 4}"
    status = k.client.get("cronjobs.batch", "cj", "default")["status"]
    assert status["lastScheduleTime"] == rfc3339(300.0) and "active" not in status
    saw = [e["message"] for e in k.client.list("events", "default") if e["reason"] == "SawCompletedJob"]
    assert len(saw) == 5 and all(text.endswith(", condition: Complete") for text in saw)


@pytest.mark.parametrize(("policy", "running"), [("Forbid", 1), ("Replace", 1), ("Allow", 3)])
def test_concurrency_policies(policy: str, running: int) -> None:
    k = cluster(verdict=by_image)
    k.client.create("cronjobs.batch", cron(image="ready", concurrencyPolicy=policy))
    k.advance(190.0)
    assert len(k.client.list("jobs.batch", "default")) == running
    refused = [e for e in k.client.list("events", "default") if e["reason"] == "JobAlreadyActive"]
    assert bool(refused) == (policy == "Forbid")


@pytest.mark.parametrize(
    ("text", "zone", "after", "expected"),
    [
        ("*/15 * * * *", "", 0.0, [900.0, 1800.0, 2700.0]),
        ("0 9 * * mon-fri", "", 0.0, [3600.0, 3600.0 + 86400, 3600.0 + 2 * 86400]),
        ("0 9 * * *", "Europe/Berlin", 0.0, [86400.0, 172800.0, 259200.0]),
        ("@hourly", "", 10.0, [3600.0, 7200.0, 10800.0]),
        ("30 8 13 * fri", "", 0.0, [88200.0, 88200.0 + 3 * 86400, 88200.0 + 10 * 86400]),
    ],
)
def test_schedules_give_their_times(text: str, zone: str, after: float, expected: list[float]) -> None:
    assert list(islice(Schedule(text, zone).after(after), 3)) == expected


@pytest.mark.parametrize("text", ["* * * *", "61 * * * *", "* * * foo *", "*/0 * * * *", "5-1 * * * *"])
def test_nonsense_is_no_schedule(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Schedule(text)


@given(st.sets(st.integers(0, 40)))
def test_indexes_survive_their_text_form(indexes: set[int]) -> None:
    assert parse_indexes(format_indexes(indexes)) == indexes
