"""A bill of many weeks with planted causes (new families, more use, higher prices) among seasons and planned changes.

Pure: equal seeds give equal bills. Every day's quantity is drawn once; a cause changes that quantity or its price, so what it
cost is known to the cent. Called by `itbench.cloud.bill`; rows are FOCUS (see `itbench.cloud.focus`).
"""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from itbench.cloud.focus import Charge
from itbench.cloud.prices import PriceBook
from itbench.core.documents.base import Document
from itbench.core.ids import Ids

CauseKind = Literal["family", "usage", "price"]
WEEKEND = (5, 6)
NOISE = 0.012
"""Relative standard deviation of a day's use."""


class Application(Document):
    """An application of the bill: instances by type, and how much less runs on weekends."""

    name: str
    account: str
    types: dict[str, int]
    weekend: float = Field(1.0, gt=0)
    """Share of the instances that run on weekends."""
    month_end: float = Field(1.0, gt=0)
    """Factor on the last three days of each month."""


class Planned(Document):
    """An approved change that the calendar names: between two days an application runs more of a type."""

    application: str
    type: str
    factor: float
    start: str
    end: str
    in_: tuple[str, ...] = Field((), alias="in")


class BillSpec(Document):
    """What a generated bill contains."""

    days: int = Field(84, ge=28)
    applications: tuple[Application, ...]
    planned: tuple[Planned, ...] = ()
    causes: tuple[CauseKind, ...] = ("family", "usage", "price")
    """Causes of the row, in this order; the twin has none."""
    began: tuple[int, int] = (9, 20)
    """Days before today within which a cause begins."""
    new_types: tuple[str, ...] = ()
    """Types from which a new family is drawn."""


@dataclass(frozen=True)
class Cause:
    """One planted cause and its price."""

    kind: CauseKind
    application: str
    """`*` for a price: it holds for all applications."""
    type: str
    """An instance type; a family for a price, which holds for all its types."""
    start: datetime.date
    factor: float
    usd: float = 0.0

    @property
    def family(self) -> str:
        """`m5` of `m5.2xlarge`."""
        return family_of(self.type)

    def answer(self) -> dict[str, Any]:
        """As agents answer."""
        return {
            "kind": self.kind,
            "application": self.application,
            "family": self.family,
            "since": self.start.isoformat(),
            "impact_usd": round(self.usd, 2),
        }


def causes(spec: BillSpec, today: datetime.date, ids: Ids) -> list[Cause]:
    """Draw the causes: each on another application and family, away from the planned changes.

    A price rises for a family that at least two applications use; use doubles or more of one type in one application.
    """
    rng = ids.rng("causes")
    families = {family_of(plan.type) for plan in spec.planned}
    applications = {plan.application for plan in spec.planned}
    found: list[Cause] = []
    for kind in spec.causes:
        start = today - datetime.timedelta(days=rng.randint(*spec.began))
        if kind == "price":
            application, name = "*", rng.choice(_shared(spec, families))
            factor = round(rng.uniform(1.25, 1.45), 3)
        else:
            application, name = rng.choice(_places(spec, kind, families, applications))
            factor = float(rng.randint(6, 12)) if kind == "family" else round(rng.uniform(1.9, 2.6), 3)
        found.append(Cause(kind, application, name, start, factor))
        families.add(family_of(name))
        applications.add(application)
    return found


def family_of(name: str) -> str:
    """`m5` of `m5.2xlarge`; a family is its own."""
    return name.split(".")[0]


def _shared(spec: BillSpec, taken: set[str]) -> list[str]:
    """Families that several applications use."""
    users = [family for app in spec.applications for family in {family_of(name) for name in app.types}]
    return sorted({family for family in users if users.count(family) >= 2 and family not in taken})


def _places(spec: BillSpec, kind: CauseKind, families: set[str], applications: set[str]) -> list[tuple[str, str]]:
    """Where a new family or more use can be planted: an application that nothing else moves, and a type."""
    return [
        (app.name, name)
        for app in spec.applications
        if app.name not in applications and app.month_end == 1.0
        for name in (spec.new_types if kind == "family" else app.types)
        if family_of(name) not in families
        and (kind == "usage" or family_of(name) not in {family_of(have) for have in app.types})
    ]


def _level(app: Application, day: datetime.date) -> float:
    level = app.weekend if day.weekday() in WEEKEND else 1.0
    return level * (app.month_end if (day + datetime.timedelta(days=3)).month != day.month else 1.0)


def _planned(spec: BillSpec, variant: str, app: str, name: str, day: datetime.date) -> float:
    factor = 1.0
    for plan in spec.planned:
        if (plan.application, plan.type) == (app, name) and (not plan.in_ or variant in plan.in_):
            inside = datetime.date.fromisoformat(plan.start) <= day <= datetime.date.fromisoformat(plan.end)
            factor *= plan.factor if inside else 1.0
    return factor


@dataclass(frozen=True)
class Bill:
    """A generated bill and what was planted in it."""

    charges: list[Charge]
    causes: list[Cause]


def generate(spec: BillSpec, book: PriceBook, *, today: datetime.date, seed: int, variant: str) -> Bill:
    """The bill of the `days` full days before `today`.

    Args:
        spec: applications, planned changes, causes.
        book: list prices.
        today: the day of hand-over; its own use is not billed yet.
        seed: of the trial.
        variant: `row` has the causes, `twin` has none.
    """
    ids = Ids(seed)
    planted = causes(spec, today, ids) if variant == "row" else []
    cost = dict.fromkeys(range(len(planted)), 0.0)
    charges: list[Charge] = []
    for back in range(spec.days, 0, -1):
        day = today - datetime.timedelta(days=back)
        for app, name in _pairs(spec, planted):
            hours, price, extra = _use(spec, book, ids, planted, (app, name, day, variant))
            if hours <= 0:
                continue
            charge = _charge(app, name, day, hours, price)
            charges.append(charge)
            if extra is not None:
                index, before = extra
                cost[index] += charge.billed - before
    done = [
        Cause(cause.kind, cause.application, cause.type, cause.start, cause.factor, cost[index])
        for index, cause in enumerate(planted)
    ]
    return Bill(charges, done)


def _pairs(spec: BillSpec, planted: list[Cause]) -> Iterator[tuple[Application, str]]:
    for app in spec.applications:
        new = [cause.type for cause in planted if cause.kind == "family" and cause.application == app.name]
        yield from ((app, name) for name in dict.fromkeys([*app.types, *new]))


def _use(
    spec: BillSpec, book: PriceBook, ids: Ids, planted: list[Cause], place: tuple[Application, str, datetime.date, str]
) -> tuple[float, float, tuple[int, float] | None]:
    """Instance hours and price of one day, and (cause, cost without it) where a cause is at work."""
    app, name, day, variant = place
    noise = 1.0 + NOISE * ids.rng("use", app.name, name, day).gauss(0.0, 1.0)
    level = 24.0 * _level(app, day) * _planned(spec, variant, app.name, name, day) * noise
    base, price = round(app.types.get(name, 0) * level, 2), float(book.price(f"ec2:{name}"))
    for index, cause in enumerate(planted):
        if day < cause.start or cause.type not in (name, family_of(name)) or cause.application not in ("*", app.name):
            continue
        before = round(base * price, 6)
        if cause.kind == "price":
            return base, round(price * cause.factor, 6), (index, before)
        if cause.kind == "usage":
            return round(base * cause.factor, 2), price, (index, before)
        return round(cause.factor * level, 2), price, (index, 0.0)
    return base, price, None


def _charge(app: Application, name: str, day: datetime.date, hours: float, price: float) -> Charge:
    return Charge(
        day=day,
        account=app.account,
        service="Amazon Elastic Compute Cloud",
        category="Compute",
        region="us-east-1",
        sku=f"ec2:{name}",
        resource=f"fleet/{app.name}/{name}",
        kind="Instance",
        quantity=hours,
        unit="Hours",
        price=price,
        billed=round(hours * price, 6),
        tags={"application": app.name},
        about=f"${price:g} per On Demand Linux {name} Instance Hour",
    )
