"""What a report shows, as plain values: filled by the run room, drawn by `html`, `junit` and `timeline`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Outcome = str
"""`pass`, `fail` or `invalid`."""


@dataclass(frozen=True, slots=True)
class CheckView:
    """One graded fact: what was seen and what was wanted, in words."""

    name: str
    passed: bool
    seen: str = ""
    wanted: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """What outside probes measured of one journey over an interval that ends at `t`.

    Attributes:
        t: world seconds.
        rate: requests per second.
        ok: share of good answers, 0 to 1; None without traffic.
        p99: seconds; None without answers.
    """

    t: float
    rate: float
    ok: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class AlertView:
    """One alert from the moment it fired; `end` is None if it still fires at the end."""

    name: str
    start: float
    end: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class ActionView:
    """One tool call or request of the agent; `ok` is None where success has no meaning."""

    t: float
    tool: str
    text: str
    ok: bool | None = True


@dataclass(frozen=True, slots=True)
class Slo:
    """What a journey promises: least share of good answers, greatest p99 in seconds."""

    ok: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True)
class TrialView:
    """One trial. All times are world seconds.

    Attributes:
        scenario, title, agent, seed: what ran.
        outcome, cause: the verdict; cause is the typed reason where it is not a pass.
        checks: every graded fact.
        metrics: name -> value; None is unknown. Units are in the names (`_s`, `_usd`).
        phases: (name, begin), in order: baseline, fault, symptom, hand-over, submit, settle, challenge.
        journeys: name -> what the probes saw.
        slos: name of a journey -> its promise.
        alerts, actions: what fired, and what the agent did.
        recovered_at: when the probes saw health again, None if they never did.
        trial: number of the attempt, from 1.
        page: what the agent was told.
        submission: what the agent answered, as text.
        evidence: (title, text) excerpts.
        link: address of the trial's own report, relative to a run's report.
    """

    scenario: str
    title: str
    agent: str
    seed: int
    outcome: Outcome
    cause: str = ""
    checks: Sequence[CheckView] = ()
    metrics: Mapping[str, float | int | str | bool | None] = field(default_factory=dict)
    phases: Sequence[tuple[str, float]] = ()
    journeys: Mapping[str, Sequence[Point]] = field(default_factory=dict)
    slos: Mapping[str, Slo] = field(default_factory=dict)
    alerts: Sequence[AlertView] = ()
    actions: Sequence[ActionView] = ()
    recovered_at: float | None = None
    trial: int = 1
    page: str = ""
    submission: str = ""
    evidence: Sequence[tuple[str, str]] = ()
    link: str = ""

    def phase(self, name: str) -> float | None:
        """When a phase began, None if it never did."""
        return next((t for each, t in self.phases if each == name), None)


@dataclass(frozen=True, slots=True)
class RunView:
    """A set of trials.

    Attributes:
        title: of the page.
        trials: in the order of the run.
        headline: (label, value) pairs for the top of the page, such as pass rate with its interval.
        facts: name -> value: versions, environment, clock, isolation.
    """

    title: str
    trials: Sequence[TrialView]
    headline: Sequence[tuple[str, str]] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
