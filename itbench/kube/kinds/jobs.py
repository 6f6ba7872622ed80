"""Jobs and CronJobs: defaults, generated selector and labels, rules."""

import re
from zoneinfo import available_timezones

from itbench.kube.client import Obj
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check, printed
from itbench.kube.kinds.failurepolicy import check_failure_policy
from itbench.kube.kinds.pods import check_template, default_template
from itbench.kube.names import too_long
from itbench.kube.selectors import matches

_PREFIX = "batch.kubernetes.io/"
_CRON_WORDS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_CRON_NAMES = frozenset(("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"))
_CRON_NAMES |= {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}
_CRON_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def _default_job(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    default_template(spec.setdefault("template", {}))
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    spec.setdefault("parallelism", 1)
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = 2147483647 if spec.get("backoffLimitPerIndex") is not None else 6
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    if "podFailurePolicy" in spec:
        spec.setdefault("podReplacementPolicy", "Failed")
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")
    labels = (spec["template"].get("metadata") or {}).get("labels")
    if labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)


def _prepare_job(new: Obj, old: Obj | None) -> None:
    """The selector and the labels by which a Job finds its pods, unless they are given by hand."""
    spec = new.setdefault("spec", {})
    if old is not None or spec.get("manualSelector"):
        return
    uid, name = new["metadata"]["uid"], new["metadata"].get("name", "")
    template = spec.setdefault("template", {})
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    given = spec.get("selector")
    for key, value in (("job-name", name), ("controller-uid", uid)):
        labels[key] = value
        labels[_PREFIX + key] = value
    own = {_PREFIX + "controller-uid": uid}
    spec["selector"] = {**(given or {}), "matchLabels": {**((given or {}).get("matchLabels") or {}), **own}}
    new["metadata"]["labels"] = {**(new["metadata"].get("labels") or {}), **labels}


def _check_job_spec(spec: Obj, field: str, check: Check, *, template_only: bool = False) -> None:
    for key in ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"):
        check.non_negative(f"{field}.{key}", spec.get(key))
    mode = spec.get("completionMode")
    if not template_only or mode is not None:
        check.one_of(f"{field}.completionMode", mode, ("NonIndexed", "Indexed"), required=not template_only)
    if mode == "Indexed" and spec.get("completions") is None:
        check.required(f"{field}.completions", "when completion mode is Indexed")
    if spec.get("backoffLimitPerIndex") is not None and mode != "Indexed":
        text = "requires indexed completion mode"
        check.invalid(f"{field}.backoffLimitPerIndex", spec["backoffLimitPerIndex"], text)
    check_failure_policy(spec.get("podFailurePolicy") or {}, f"{field}.podFailurePolicy", check)
    replacement = ("Failed", "TerminatingOrFailed")
    check.one_of(f"{field}.podReplacementPolicy", spec.get("podReplacementPolicy"), replacement, required=False)
    check_template(spec.get("template") or {}, f"{field}.template", check)
    policy = (spec.get("template") or {}).get("spec", {}).get("restartPolicy")
    if policy not in ("OnFailure", "Never"):
        check.required(f"{field}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def _check_job(obj: Obj, check: Check) -> None:
    spec = obj["spec"]
    if len(obj["metadata"].get("name", "")) > 63:
        check.invalid("metadata.name", obj["metadata"]["name"], too_long(63))
    if spec.get("selector") is None:
        check.required("spec.selector")
    else:
        labels = (spec["template"].get("metadata") or {}).get("labels")
        generated = {"matchLabels": {_PREFIX + "controller-uid": obj["metadata"].get("uid")}}
        if not spec.get("manualSelector") and spec["selector"] != generated:
            check.invalid("spec.selector", spec["selector"], "`selector` not auto-generated")
        if not matches(spec["selector"], labels):
            shown = dict(sorted(labels.items())) if labels else labels
            check.invalid("spec.template.metadata.labels", shown, "`selector` does not match template `labels`")
    _check_job_spec(spec, "spec", check)


def _check_job_update(new: Obj, old: Obj, check: Check) -> None:
    for key in ("completions", "selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"):
        if key != "completions" or old["spec"].get("completionMode") != "Indexed":
            check.immutable(f"spec.{key}", new["spec"].get(key), old["spec"].get(key))
    suspended = old["spec"].get("suspend") and not old.get("status", {}).get("startTime")
    if not suspended:
        check.immutable("spec.template", new["spec"].get("template"), old["spec"].get("template"))


def _default_cronjob(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    for key, value in (("concurrencyPolicy", "Allow"), ("suspend", False)):
        spec.setdefault(key, value)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    job = spec.setdefault("jobTemplate", {}).setdefault("spec", {})
    default_template(job.setdefault("template", {}))


def _cron_value(text: str, low: int, high: int) -> bool:
    return text.upper() in _CRON_NAMES or (text.isdigit() and low <= int(text) <= high)


def _cron_field(text: str, low: int, high: int) -> bool:
    for part in text.split(","):
        body, _, step = part.partition("/")
        if step and (not step.isdigit() or int(step) == 0):
            return False
        ends = body.split("-")
        if body not in ("*", "?") and (len(ends) > 2 or not all(_cron_value(end, low, high) for end in ends)):
            return False
    return True


def schedule_is_valid(text: str) -> bool:
    """Five fields in the standard form, a macro, or `@every 1h`."""
    if text in _CRON_WORDS or re.fullmatch(r"@every (\d+(\.\d+)?(h|m|s))+", text):
        return True
    fields = text.split()
    return len(fields) == 5 and all(_cron_field(row, *span) for row, span in zip(fields, _CRON_RANGES, strict=True))


def _schedule_error(text: str) -> str:
    count = len(text.split())
    if count != 5:
        return f"expected exactly 5 fields, found {count}: {_fields(text)}"
    for row, (low, high) in zip(text.split(), _CRON_RANGES, strict=True):
        for number in re.findall(r"\d+", row.split("/")[0]):
            if int(number) > high:
                return f"end of range ({int(number)}) above maximum ({high}): {row}"
            if int(number) < low:
                return f"beginning of range ({int(number)}) below minimum ({low}): {row}"
    row = next(row for row, span in zip(text.split(), _CRON_RANGES, strict=True) if not _cron_field(row, *span))
    return f"failed to parse int from {row}: strconv.Atoi: parsing {printed(row)}: invalid syntax"


def _fields(text: str) -> str:
    return "[" + " ".join(text.split()) + "]"


def _check_cronjob(obj: Obj, check: Check) -> None:
    spec = obj["spec"]
    if len(obj["metadata"].get("name", "")) > 52:
        check.invalid("metadata.name", obj["metadata"]["name"], too_long(52))
    schedule = spec.get("schedule", "")
    if not schedule:
        check.required("spec.schedule")
    elif "TZ" in schedule:
        check.invalid("spec.schedule", schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    elif not schedule_is_valid(schedule):
        check.invalid("spec.schedule", schedule, _schedule_error(schedule))
    zone = spec.get("timeZone")
    check.non_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    if zone is not None and zone not in available_timezones():
        check.invalid("spec.timeZone", zone, f"unknown time zone {zone}")
    check.one_of("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace"))
    for key in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        check.non_negative(f"spec.{key}", spec.get(key))
    _check_job_spec(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec", check, template_only=True)


JOB = Behaviour(
    default=_default_job,
    prepare=_prepare_job,
    validate=_check_job,
    validate_update=_check_job_update,
    generation=True,
)
CRONJOB = Behaviour(default=_default_cronjob, validate=_check_cronjob, generation=True)
