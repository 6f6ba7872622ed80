"""Answers about a generated bill, right and wrong, for repairs and decoys of scenarios. Called by the account driver."""

from typing import Any

from itbench.cloud.anomalies import Bill, BillSpec


def variants(bill: Bill, spec: BillSpec) -> dict[str, list[dict[str, Any]]]:
    """Lists of causes by name: `causes` is the truth.

    `rounded`: in another order, in whole dollars; `estimated`: off by six percent, as a good baseline may be; `first`: one of
    several; `wrong-impact`: right causes, half again as expensive; `everything`: all that the bill has; `seasonal`: what merely
    rises and falls; `none`: no anomaly.
    """
    causes = [cause.answer() for cause in bill.causes]

    def impact(factor: float, digits: int) -> list[dict[str, Any]]:
        return [cause | {"impact_usd": round(cause["impact_usd"] * factor, digits)} for cause in causes]

    since = bill.charges[0].day.isoformat()
    pairs = [(app.name, name.split(".")[0]) for app in spec.applications for name in app.types]
    seen = {(cause["application"], cause["family"]) for cause in causes}
    usage = [
        {"kind": "usage", "application": app, "family": family, "since": since, "impact_usd": 1000.0}
        for app, family in dict.fromkeys(pairs)
    ]
    swinging = {app.name for app in spec.applications if app.month_end != 1.0 or app.weekend < 0.7}
    swinging |= {plan.application for plan in spec.planned}
    return {
        "causes": causes,
        "rounded": [cause | {"impact_usd": round(cause["impact_usd"])} for cause in reversed(causes)],
        "estimated": impact(1.06, 2),
        "first": causes[:1],
        "wrong-impact": impact(1.5, 2),
        "everything": [*causes, *(item for item in usage if (item["application"], item["family"]) not in seen)],
        "seasonal": [item for item in usage if item["application"] in swinging],
        "none": [],
    }
