"""The HTML report of a trial or a run: one file, no scripts, no network, every text escaped.

Called when a trial or a run ends, and by `itbench report`.
"""

from collections.abc import Iterable, Sequence
from html import escape
from math import isnan

from itbench.report.model import ActionView, RunView, TrialView
from itbench.report.style import STYLE
from itbench.report.timeline import draw_timeline, good_shares, scale_of, show_span, thin

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""Content security policy: nothing can be loaded, sent or run."""
MARKS = {"pass": "✓ pass", "fail": "✗ fail", "invalid": "! invalid"}
INLINE_TRIALS = 12
"""A run with more trials than this links to their own reports instead of drawing them all."""


def page(title: str, body: str) -> str:
    """A complete document."""
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    head += '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">'
    head += f"<title>{escape(title)}</title><style>{STYLE}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def badge(outcome: str, *, small: bool = False) -> str:
    """The outcome, told by word and sign as well as by colour."""
    style = outcome if outcome in MARKS else "invalid"
    return f'<span class="badge {style}{" small" if small else ""}">{escape(MARKS.get(outcome, outcome))}</span>'


def show_value(name: str, value: float | int | str | bool | None) -> str:
    """A metric in the unit that its name says."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if name.endswith("_s"):
        return show_span(value) if abs(value) >= 60 else f"{value:.3g} s"
    if name.endswith("_usd"):
        return f"${value:,.4f}" if abs(value) < 1 else f"${value:,.2f}"
    if isinstance(value, int) or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.4g}"


def show_name(name: str) -> str:
    """A metric's name without its unit, as words."""
    for unit in ("_s", "_usd"):
        name = name.removesuffix(unit)
    return name.replace("_", " ")


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Headline facts as cards: what comes before the first bracket, comma or semicolon large, the rest small beneath."""
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{_fact(value)}</dd></div>" for name, value in pairs)
    return f'<dl class="facts">{cells}</dl>' if cells else ""


def _fact(value: str) -> str:
    at = min((found for mark in (" [", ", ", "; ") if (found := value.find(mark)) > 0), default=len(value))
    rest = value[at:].lstrip(",; ")
    return f"{escape(value[:at])}<small>{escape(rest)}</small>" if rest else escape(value)


def _checks(view: TrialView) -> str:
    if not view.checks:
        return ""
    rows = []
    for check in sorted(view.checks, key=lambda each: each.passed):
        state = '<td class="state pass">✓ passed</td>' if check.passed else '<td class="state fail">✗ missed</td>'
        row = f'<th scope="row">{escape(check.name)}</th>{state}<td>{escape(check.seen)}</td><td>{escape(check.wanted)}</td>'
        rows.append(_row(row, missed=not check.passed))
    passed = sum(check.passed for check in view.checks)
    head = '<tr><th scope="col">Check</th><th scope="col">Result</th><th scope="col">Seen</th><th scope="col">Wanted</th></tr>'
    caption = f"<caption>{passed} of {len(view.checks)} checks passed; the missed ones come first.</caption>"
    return _table("Checks", caption, head, rows)


def _row(cells: str, *, missed: bool = False) -> str:
    return f'<tr class="missed">{cells}</tr>' if missed else f"<tr>{cells}</tr>"


def _table(title: str, caption: str, head: str, rows: Sequence[str]) -> str:
    label = escape(title, quote=True)
    table = f"<table>{caption}<thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<h2>{escape(title)}</h2><div class="scroll" tabindex="0" role="region" aria-label="{label}">{table}</div>'


def _actions(view: TrialView) -> str:
    if not view.actions:
        return ""
    scale = scale_of(view)
    rows = [_action(number, action, scale.label(action.t)) for number, action in enumerate(view.actions, start=1)]
    names = (("#", "num"), ("Time", "num"), ("Tool", ""), ("What", ""), ("Result", ""))
    head = "<tr>" + "".join(f'<th scope="col" class="{style}">{name}</th>' for name, style in names) + "</tr>"
    failed = sum(action.ok is False for action in view.actions)
    caption = f"<caption>{len(rows)} actions, {failed} failed. Times count from the hand-over.</caption>"
    return _table("What the agent did", caption, head, rows)


def _action(number: int, action: ActionView, when: str) -> str:
    result = "" if action.ok is None else "✓ ok" if action.ok else "✗ failed"
    style = "state" + ("" if action.ok is not False else " fail")
    what = f'<td class="num">{number}</td><td class="num">{when}</td><td>{escape(action.tool)}</td>'
    return _row(f'{what}<td class="code">{escape(action.text)}</td><td class="{style}">{result}</td>')


def _details(title: str, text: str, *, opened: bool = False) -> str:
    if not text:
        return ""
    return f"<details{' open' if opened else ''}><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


_KEYS = (
    ('<path class="ok" d="M0 6H26"/>', "share of good answers"),
    ('<rect class="lost" width="26" height="12"/>', "lost"),
    ('<path class="p99" d="M0 6H26"/>', "99th percentile latency"),
    ('<path class="slo" d="M0 6H26"/>', "objective"),
    ('<rect class="alert" y="2" width="26" height="8" rx="2"/>', "alert fires"),
    ('<rect class="act" x="11" width="3" height="12" rx="1"/>', "action"),
    ('<path class="act failed" d="M9 2l8 8m0 -8l-8 8"/>', "failed action"),
    ('<path class="act submit" d="M13 0l6 6l-6 6l-6 -6Z"/>', "submission"),
    ('<path class="recovered" d="M0 6H26"/>', "recovery"),
)


def _legend() -> str:
    items = "".join(
        f'<li><svg viewBox="0 0 26 12" aria-hidden="true">{shape}</svg>{text}</li>' for shape, text in _KEYS
    )
    return f'<ul class="legend" aria-label="Legend">{items}</ul>'


def _timeline(view: TrialView, ident: str) -> str:
    if not (view.phases or view.journeys or view.actions):
        return ""
    drawing = f'<div class="scroll" tabindex="0" role="region" aria-label="Incident timeline">{draw_timeline(view, ident)}</div>'
    return f"<h2>Incident timeline</h2>{drawing}{_legend()}"


def _summary(view: TrialView) -> list[tuple[str, str]]:
    """The values at the top: recovery first, then the metrics."""
    pairs = []
    begin = next((t for t in map(view.phase, ("hand-over", "handover", "agent")) if t is not None), None)
    if view.recovered_at is not None and begin is not None:
        pairs.append(("recovered after hand-over", show_span(view.recovered_at - begin)))
    elif view.journeys:
        pairs.append(("recovered", "yes" if view.recovered_at is not None else "never"))
    passed = sum(check.passed for check in view.checks)
    if view.checks:
        pairs.append(("checks passed", f"{passed} of {len(view.checks)}"))
    return pairs + [(show_name(name), show_value(name, value)) for name, value in view.metrics.items()]


def trial_section(view: TrialView, ident: str = "timeline", level: int = 1) -> str:
    """Everything about one trial."""
    about = f"{view.scenario} · agent {view.agent} · seed {view.seed} · attempt {view.trial}"
    cause = f'<p class="sub">cause: {escape(view.cause)}</p>' if view.cause else ""
    title = f"<h{level}>{escape(view.title)}</h{level}><p class='sub'>{escape(about)}</p>{cause}"
    parts = [f"<header><div>{title}</div>{badge(view.outcome)}</header>", facts(_summary(view)), _timeline(view, ident)]
    parts += [_checks(view), _actions(view)]
    texts = [_details("The page that the agent got", view.page), _details("What the agent submitted", view.submission)]
    texts += [_details(name, text) for name, text in view.evidence]
    if any(texts):
        parts.append("<h2>Evidence</h2>" + "".join(texts))
    return f'<section class="trial">{"".join(parts)}</section>'


FOOTER = "<footer>Made by itbench. This file loads nothing and can be kept, mailed and printed.</footer>"


def render_trial(view: TrialView) -> str:
    """The report of one trial, a complete HTML document."""
    return page(f"{view.scenario}: {view.outcome}", f"<main>{trial_section(view)}</main>{FOOTER}")


def _spark(view: TrialView) -> str:
    """The worst journey of a trial in small."""
    scale = scale_of(view)
    journeys = [points for points in (thin(each, scale) for each in view.journeys.values()) if good_shares(points)]
    if not journeys:
        return ""
    points = min(journeys, key=lambda each: sum(good_shares(each)) / len(good_shares(each)))
    places = [(1 + 148 * scale.share(p.t), 24 - 22 * p.ok) for p in points if p.ok is not None]
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    low = min(good_shares(points))
    return (
        f'<svg class="spark" viewBox="0 0 150 26" role="img" aria-label="share of good answers, at worst {low:.0%}">'
        f'<path class="ok" d="M{line}"/></svg>'
    )


def _trial_row(number: int, view: TrialView, *, inline: bool) -> str:
    address = f"#trial-{number}" if inline else view.link
    name = escape(view.scenario)
    name = f'<a href="{escape(address, quote=True)}">{name}</a>' if address and ":" not in address else name
    passed = sum(check.passed for check in view.checks)
    missed = ", ".join(check.name for check in view.checks if not check.passed)
    checks = f"{passed}/{len(view.checks)}" if view.checks else "–"
    cells = f'<th scope="row">{name}</th><td>{escape(view.title)}</td><td>{escape(view.agent)}</td>'
    cells += f'<td class="num">{view.seed}</td><td class="num">{view.trial}</td>'
    cells += f"<td>{badge(view.outcome, small=True)}</td><td>{_spark(view)}</td>"
    cells += f'<td class="num">{checks}</td><td>{escape(missed or view.cause)}</td>'
    return _row(cells)


def _trials(run: RunView, *, inline: bool) -> str:
    names = ("Scenario", "Title", "Agent", "Seed", "Attempt", "Outcome", "Good answers", "Checks", "Missed or cause")
    numeric = ("Seed", "Attempt", "Checks")
    head = "".join(f'<th scope="col" class="{"num" if name in numeric else ""}">{name}</th>' for name in names)
    rows = [_trial_row(number, view, inline=inline) for number, view in enumerate(run.trials, start=1)]
    counts = [f"{sum(view.outcome == each for view in run.trials)} {each}" for each in MARKS]
    number = "1 trial" if len(rows) == 1 else f"{len(rows)} trials"
    return _table("Trials", f"<caption>{number}: {', '.join(counts)}.</caption>", f"<tr>{head}</tr>", rows)


def render_run(run: RunView) -> str:
    """The report of a run, a complete HTML document; few trials are drawn in full, many are linked."""
    inline = len(run.trials) <= INLINE_TRIALS
    parts = [f"<header><h1>{escape(run.title)}</h1></header>", facts(run.headline), _trials(run, inline=inline)]
    if len(run.trials) == 1:
        parts.append(f'<div id="trial-1" class="alone">{trial_section(run.trials[0], level=2)}</div>')
    elif inline:
        for number, view in enumerate(run.trials, start=1):
            summary = f"{escape(view.scenario)}: {escape(view.title)} — {escape(MARKS.get(view.outcome, view.outcome))}"
            body = trial_section(view, f"timeline-{number}", level=3)
            parts.append(f'<details id="trial-{number}"><summary>{summary}</summary>{body}</details>')
    if run.facts:
        rows = [
            _row(f'<th scope="row">{escape(name)}</th><td>{escape(value)}</td>') for name, value in run.facts.items()
        ]
        parts.append(_table("How it ran", "", "", rows))
    return page(run.title, f"<main>{''.join(parts)}</main>{FOOTER}")
