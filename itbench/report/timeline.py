"""The incident timeline as one inline SVG: phases, two lanes per journey, alerts, the agent's actions, recovery.

Called by `html`. Colours come from the page's style sheet through classes, so that the drawing follows light, dark and print.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isnan, log10

from itbench.report.model import ActionView, AlertView, Point, Slo, TrialView

WIDTH, LEFT, RIGHT = 1120, 216, 16
SUCCESS_H, LATENCY_H, LANE_H, GAP = 74, 48, 20, 20
MAX_ALERT_LANES = 12

PHASES: dict[str, tuple[str, str]] = {
    "baseline": ("baseline", "quiet"),
    "inject": ("fault", "fault"),
    "fault": ("fault", "fault"),
    "symptom": ("symptom", "fault"),
    "hand-over": ("agent at work", "agent"),
    "handover": ("agent at work", "agent"),
    "agent": ("agent at work", "agent"),
    "submit": ("submitted", "settle"),
    "settle": ("settling", "settle"),
    "challenge": ("challenge", "challenge"),
    "end": ("", "quiet"),
}
"""Phase -> (label, style class); unknown phases are shown by their own name."""


def show_span(seconds: float) -> str:
    """Seconds as `m:ss` or `h:mm:ss`, with a sign."""
    sign, whole = ("−" if seconds < -0.5 else ""), round(abs(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{sign}{hours}:{minutes:02d}:{rest:02d}" if hours else f"{sign}{minutes}:{rest:02d}"


def show_seconds(seconds: float) -> str:
    """A latency in the unit that suits it."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:.0f} s"


@dataclass(frozen=True, slots=True)
class Scale:
    """World seconds -> horizontal place; `origin` is shown as 0:00."""

    start: float
    end: float
    origin: float

    def x(self, t: float) -> float:
        """Place of a time, within the plot."""
        return LEFT + self.share(t) * (WIDTH - LEFT - RIGHT)

    def share(self, t: float) -> float:
        """A time as a share of the way from start to end."""
        return min(1.0, max(0.0, (t - self.start) / (self.end - self.start)))

    def label(self, t: float) -> str:
        """A time as the page shows it: relative to the origin."""
        return show_span(t - self.origin)


def scale_of(view: TrialView) -> Scale:
    """From the first phase (else the first thing known) to the last thing known; 0:00 is the hand-over, else the start."""
    times = [t for _, t in view.phases] + [action.t for action in view.actions]
    for points in view.journeys.values():
        times += [points[0].t, points[-1].t] if points else []
    for alert in view.alerts:
        times += [alert.start] if alert.end is None else [alert.start, alert.end]
    if view.recovered_at is not None:
        times.append(view.recovered_at)
    start, end = (min(times), max(times)) if times else (0.0, 1.0)
    start = min((t for _, t in view.phases), default=start)
    origins = [view.phase(name) for name in ("hand-over", "handover", "agent")]
    origin = next((t for t in origins if t is not None), start)
    return Scale(start, end if end > start else start + 1.0, origin)


def known(value: float | None) -> float | None:
    """The value, None if it is not a number."""
    return None if value is None or isnan(value) else value


def thin(points: Sequence[Point], scale: Scale) -> list[Point]:
    """At most one point per pixel: the worst share of good answers and the worst latency of those that fall on it."""
    columns: dict[int, list[Point]] = {}
    for point in points:
        if scale.start <= point.t <= scale.end:
            columns.setdefault(round(scale.x(point.t)), []).append(point)
    return [_worst(group) for group in columns.values()]


def good_shares(points: Sequence[Point]) -> list[float]:
    """The shares of good answers that are known."""
    return [ok for ok in (known(point.ok) for point in points) if ok is not None]


def latencies(points: Sequence[Point]) -> list[float]:
    """The p99 latencies that are known and positive."""
    return [p99 for p99 in (known(point.p99) for point in points) if p99 is not None and p99 > 0]


def _worst(group: Sequence[Point]) -> Point:
    oks, slow = good_shares(group), latencies(group)
    rate = sum(point.rate for point in group) / len(group)
    return Point(group[-1].t, rate, min(oks, default=None), max(slow, default=None))


def _runs(places: Sequence[tuple[float, float | None]]) -> Iterator[list[tuple[float, float]]]:
    """Stretches without gaps."""
    run: list[tuple[float, float]] = []
    for x, y in places:
        if y is None:
            if run:
                yield run
            run = []
        else:
            run.append((x, y))
    if run:
        yield run


def _path(run: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in run)


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _gutter(x: float, y: float, name: str) -> str:
    """A lane's name at the left."""
    tip = f"<title>{escape(name)}</title>"
    return f'<text x="{x:.1f}" y="{y:.1f}" class="lane" text-anchor="end">{tip}{escape(_short(name, 23))}</text>'


def _success(points: Sequence[Point], slo: Slo, scale: Scale, top: float) -> str:
    """The share of good answers; what was lost is filled."""

    def y(share: float) -> float:
        return top + (1.0 - min(1.0, max(0.0, share))) * SUCCESS_H

    parts = []
    for share in (0.0, 0.5, 1.0):
        parts.append(_line(LEFT, y(share), WIDTH - RIGHT, y(share), "grid"))
        parts.append(_text(LEFT - 6, y(share) + 4, f"{share:.0%}", "tick", "end"))
    places = [(scale.x(p.t), None if p.ok is None else y(p.ok)) for p in points]
    for run in _runs(places):
        first, last = run[0][0], run[-1][0]
        parts.append(f'<path class="lost" d="{_path([(first, y(1.0)), *run, (last, y(1.0))])}Z"/>')
        parts.append(f'<path class="ok" d="{_path(run)}"/>')
    if slo.ok is not None:
        parts.append(_line(LEFT, y(slo.ok), WIDTH - RIGHT, y(slo.ok), "slo"))
    return "".join(parts)


FINEST = -6
"""Lowest power of ten of the latency scale, in seconds: nothing is drawn below a microsecond."""


def _latency(points: Sequence[Point], slo: Slo, scale: Scale, top: float) -> str:
    """The p99 latency on a logarithmic scale."""
    measured = latencies(points)
    bounds = measured + ([slo.p99] if slo.p99 else [])
    low = max(floor(log10(min(bounds))), FINEST)
    high = max(ceil(log10(max(bounds))), low + 1)

    def y(value: float) -> float:
        return top + (1.0 - (log10(max(value, 10.0**low)) - low) / (high - low)) * LATENCY_H

    parts = []
    every = 1 if high - low <= 3 else 2
    for power in range(low, high + 1, every):
        parts.append(_line(LEFT, y(10.0**power), WIDTH - RIGHT, y(10.0**power), "grid"))
        parts.append(_text(LEFT - 6, y(10.0**power) + 4, show_seconds(10.0**power), "tick", "end"))
    places = [(scale.x(p.t), None if p.p99 is None else y(p.p99)) for p in points]
    parts += [f'<path class="p99" d="{_path(run)}"/>' for run in _runs(places)]
    if slo.p99:
        parts.append(_line(LEFT, y(slo.p99), WIDTH - RIGHT, y(slo.p99), "slo"))
    return "".join(parts)


def _journey(name: str, thinned: Sequence[Point], slo: Slo, scale: Scale, top: float) -> tuple[str, float]:
    """The lanes of a journey, and where the next may begin; the latency lane only where latency was measured."""
    oks = good_shares(thinned)
    worst = f"worst {min(oks):.1%}" if oks else "no traffic"
    drawn = _success(thinned, slo, scale, top)
    side = LEFT - 52
    label = _gutter(side, top + 24, name) + _text(side, top + 39, "good answers", "muted", "end")
    label += _text(side, top + 54, worst, "muted", "end")
    below = top + SUCCESS_H + GAP
    if latencies(thinned):
        drawn += _latency(thinned, slo, scale, below) + _text(side, below + 27, "p99", "muted", "end")
        below += LATENCY_H + GAP + 6
    return f'<g class="journey">{drawn}{label}</g>', below


def _worst_first(view: TrialView, scale: Scale) -> list[tuple[str, list[Point]]]:
    """Journeys by the mean share of good answers: the one that suffered most is at the top."""
    thinned = [(name, thin(points, scale)) for name, points in view.journeys.items()]

    def mean(points: Sequence[Point]) -> float:
        oks = good_shares(points)
        return sum(oks) / len(oks) if oks else 2.0

    return sorted(thinned, key=lambda pair: round(mean(pair[1]), 3))


def _phases(view: TrialView, scale: Scale, bottom: float) -> str:
    """Tinted stretches over all lanes, with labels at the top."""
    parts = []
    for number, (name, begin) in enumerate(view.phases):
        end = view.phases[number + 1][1] if number + 1 < len(view.phases) else scale.end
        label, style = PHASES.get(name, (name, "quiet"))
        left, right = scale.x(begin), scale.x(end)
        if right - left < 0.5:
            continue
        tip = f"<title>{escape(label or name)}: {scale.label(begin)} to {scale.label(end)}</title>"
        parts.append(
            f'<rect class="phase {style}" x="{left:.1f}" y="0" width="{right - left:.1f}" height="{bottom:.1f}">{tip}</rect>'
        )
        parts.append(
            f'<rect class="band {style}" x="{left:.1f}" y="0" width="{right - left:.1f}" height="20">{tip}</rect>'
        )
        if right - left > 7 * len(label) + 6:
            parts.append(_text((left + right) / 2, 14, label, "band-label", "middle"))
    return "".join(parts)


def _alert_lanes(alerts: Sequence[AlertView], scale: Scale) -> list[tuple[str, list[AlertView]]]:
    """Alerts by name; those that were over before the first phase (while the estate came up) are no part of the incident."""
    lanes: dict[str, list[AlertView]] = {}
    for alert in sorted(alerts, key=lambda each: each.start):
        if alert.end is None or alert.end > scale.start:
            lanes.setdefault(alert.name, []).append(alert)
    return list(lanes.items())


def _alerts(lanes: Sequence[tuple[str, list[AlertView]]], scale: Scale, top: float) -> str:
    parts = []
    for number, (name, alerts) in enumerate(lanes):
        y = top + number * LANE_H
        label = f"{name} ×{len(alerts)}" if len(alerts) > 1 else name
        parts.append(_line(LEFT, y + LANE_H / 2, WIDTH - RIGHT, y + LANE_H / 2, "grid"))
        parts.append(_gutter(LEFT - 8, y + LANE_H / 2 + 4, label))
        for alert in alerts:
            left, right = scale.x(alert.start), scale.x(scale.end if alert.end is None else alert.end)
            until = "still firing at the end" if alert.end is None else f"until {scale.label(alert.end)}"
            tip = f"<title>{escape(name)}: from {scale.label(alert.start)} {until}. {escape(alert.text)}</title>"
            size = f'width="{max(2.0, right - left):.1f}" height="{LANE_H - 8}" rx="2"'
            parts.append(f'<rect class="alert" x="{left:.1f}" y="{y + 4:.1f}" {size}>{tip}</rect>')
    return "".join(parts)


def _actions(actions: Sequence[ActionView], scale: Scale, top: float) -> str:
    """One mark per action: a bar, a cross where it failed, a diamond for the submission."""
    parts = [_line(LEFT, top + LANE_H / 2, WIDTH - RIGHT, top + LANE_H / 2, "grid")]
    parts.append(_gutter(LEFT - 8, top + LANE_H / 2 + 4, f"actions ({len(actions)})"))
    middle = top + LANE_H / 2
    for number, action in enumerate(actions, start=1):
        x = scale.x(action.t)
        state = "" if action.ok is None else " (ok)" if action.ok else " (failed)"
        tip = f"<title>{number}. {scale.label(action.t)} {escape(action.tool)}{state}: {escape(_short(action.text, 200))}</title>"
        if action.tool == "submit":
            shape = f"M{x:.1f} {middle - 7:.1f}l7 7l-7 7l-7 -7Z"
            parts.append(f'<path class="act submit" d="{shape}">{tip}</path>')
        elif action.ok is False:
            parts.append(f'<path class="act failed" d="M{x - 4:.1f} {middle - 4:.1f}l8 8m0 -8l-8 8">{tip}</path>')
        else:
            parts.append(
                f'<rect class="act" x="{x - 1.5:.1f}" y="{middle - 7:.1f}" width="3" height="14" rx="1">{tip}</rect>'
            )
    return "".join(parts)


STEPS_S = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 604800)


def _axis(scale: Scale, bottom: float) -> str:
    """Ticks at round distances from the origin."""
    wanted = (scale.end - scale.start) / 10.0
    step = next((each for each in STEPS_S if each >= wanted), STEPS_S[-1])
    parts = []
    first = ceil((scale.start - scale.origin) / step)
    for number in range(first, floor((scale.end - scale.origin) / step) + 1):
        x = scale.x(scale.origin + number * step)
        parts.append(_line(x, 20, x, bottom, "grid"))
        parts.append(_text(x, bottom + 15, show_span(number * step), "tick", "middle"))
    return "".join(parts)


def _recovery(view: TrialView, scale: Scale, bottom: float) -> str:
    if view.recovered_at is None:
        return ""
    x = scale.x(view.recovered_at)
    label = f"recovered {scale.label(view.recovered_at)}"
    anchor, at = ("end", x - 5) if x > WIDTH - 130 else ("start", x + 5)
    return _line(x, 20, x, bottom, "recovered") + _text(at, 33, label, "recovered-label", anchor)


def describe(view: TrialView, scale: Scale) -> str:
    """The drawing in words, for those who cannot see it."""
    parts = [f"{PHASES.get(name, (name, ''))[0] or name} from {scale.label(t)}" for name, t in view.phases]
    for name, points in _worst_first(view, scale):
        oks = good_shares(points)
        if oks:
            parts.append(f"journey {name}: worst share of good answers {min(oks):.1%}, last {oks[-1]:.1%}")
    parts.append(f"{len(view.alerts)} alerts, {len(view.actions)} actions")
    parts.append("never recovered" if view.recovered_at is None else f"recovered at {scale.label(view.recovered_at)}")
    return "; ".join(parts) + "."


def draw_timeline(view: TrialView, ident: str = "timeline") -> str:
    """The SVG element; `ident` makes ids unique where a page has several."""
    scale = scale_of(view)
    lanes = _alert_lanes(view.alerts, scale)
    shown, hidden = lanes[:MAX_ALERT_LANES], len(lanes[MAX_ALERT_LANES:])
    top, body = 44.0, []
    for name, thinned in _worst_first(view, scale):
        lanes_of, top = _journey(name, thinned, view.slos.get(name, Slo()), scale, top)
        body.append(lanes_of)
    body.append(_alerts(shown, scale, top))
    top += len(shown) * LANE_H
    if hidden:
        body.append(_text(LEFT - 8, top + 12, f"and {hidden} more alerts", "muted", "end"))
        top += LANE_H
    body.append(_actions(view.actions, scale, top + 4))
    bottom = top + LANE_H + 10
    name = f"{ident}-title"
    head = f'<svg class="timeline" viewBox="0 0 {WIDTH} {bottom + 24:.0f}" role="img" aria-labelledby="{name} {ident}-words">'
    words = (
        f'<title id="{name}">Incident timeline</title><desc id="{ident}-words">{escape(describe(view, scale))}</desc>'
    )
    layers = _phases(view, scale, bottom) + _axis(scale, bottom) + "".join(body) + _recovery(view, scale, bottom)
    return head + words + layers + "</svg>"
