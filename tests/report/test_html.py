"""The HTML report shows every fact, escapes every text, and loads nothing."""

import re
from dataclasses import fields, replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.report.html import INLINE_TRIALS, render_run, render_trial, show_value
from itbench.report.model import ActionView, AlertView, CheckView, Point, RunView, TrialView

HOSTILE = "<script>alert('x')</script>\" onload=\"x"
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Reader(HTMLParser):
    """Collects tags, attributes and text; notices what is not closed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.ids: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(document: str) -> Reader:
    reader = Reader()
    reader.feed(document)
    reader.close()
    assert reader.open == []
    return reader


def hostile(view: TrialView) -> TrialView:
    """The view with a script in every text."""
    texts = {each.name: HOSTILE for each in fields(view) if isinstance(getattr(view, each.name), str)}
    return replace(
        view,
        **texts,
        checks=[CheckView(HOSTILE, False, HOSTILE, HOSTILE)],
        metrics={HOSTILE: HOSTILE},
        phases=[(HOSTILE, 0.0), *view.phases],
        journeys={HOSTILE: view.journeys["buy"]},
        alerts=[AlertView(HOSTILE, 1.0, 900.0, HOSTILE)],
        actions=[ActionView(500.0, HOSTILE, HOSTILE, False)],
        evidence=[(HOSTILE, HOSTILE)],
    )


def test_every_fact_of_a_trial_is_on_its_page(view: TrialView) -> None:
    text = " ".join(read(render_trial(view)).text)
    wanted = [
        view.title,
        view.agent,
        "✗ fail",
        view.cause,
        "recovered 6:55",
        "unknown",
        "5,231",
        "HighRequestErrorRate",
        "actions (11)",
    ]
    wanted += [each for check in view.checks for each in (check.name, check.seen, check.wanted)]
    wanted += [action.text for action in view.actions] + [view.page, view.submission, view.evidence[0][1]]
    assert [each for each in wanted if each not in text] == []


def test_texts_cannot_become_markup(view: TrialView) -> None:
    bad = hostile(view)
    for document in (render_trial(bad), render_run(RunView(HOSTILE, [bad], [(HOSTILE, HOSTILE)], {HOSTILE: HOSTILE}))):
        reader = read(document)
        assert "script" not in reader.tags
        assert not [name for name, _ in reader.attributes if name.startswith("on")]
        assert HOSTILE in " ".join(reader.text)


def test_nothing_is_loaded_from_anywhere(view: TrialView) -> None:
    reader = read(render_run(RunView("run", [view])))
    assert not reader.tags & {"script", "link", "img", "iframe", "object", "embed", "form", "use", "image"}
    assert [value for name, value in reader.attributes if name in ("href", "src") and not value.startswith("#")] == []
    policy = next(v for n, v in reader.attributes if n == "content")
    assert policy.startswith("default-src 'none'")
    assert not re.search(r"url\(|@import", render_trial(view))


def test_links_of_a_run_lead_only_into_its_folder(view: TrialView) -> None:
    for link in ("javascript:alert(1)", "https://example.com/"):
        many = [replace(view, link=link)] * (INLINE_TRIALS + 1)
        assert "href" not in dict(read(render_run(RunView("run", many))).attributes)
    many = [replace(view, link="trials/0001/report.html")] * (INLINE_TRIALS + 1)
    assert dict(read(render_run(RunView("run", many))).attributes)["href"] == "trials/0001/report.html"


def test_ids_are_unique_and_names_of_drawings_exist(view: TrialView) -> None:
    reader = read(render_run(RunView("run", [view, view, view])))
    assert len(reader.ids) == len(set(reader.ids))
    referred = [each for name, value in reader.attributes if name == "aria-labelledby" for each in value.split()]
    assert referred and set(referred) <= set(reader.ids)


def test_a_trial_that_never_began_has_a_page(view: TrialView) -> None:
    bare = TrialView("sre-1", "Nothing happened", "nop", 0, "invalid", "stage_failed")
    text = " ".join(read(render_trial(bare)).text)
    assert "! invalid" in text and "stage_failed" in text and "Incident timeline" not in text
    assert "1 pass" not in " ".join(read(render_run(RunView("run", [bare, view]))).text)


def test_equal_views_give_equal_bytes(view: TrialView) -> None:
    assert render_trial(view) == render_trial(replace(view))


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("time_to_mitigate_s", 410.0, "6:50"), ("time_to_mitigate_s", 3.25, "3.25 s"), ("cost_usd", None, "unknown"),
        ("cost_usd", 1234.5, "$1,234.50"), ("cost_usd", 0.0123, "$0.0123"), ("share", 0.123456, "0.1235"), ("steps", 11, "11"),
        ("safe", True, "yes"), ("x", float("nan"), "unknown"),
    ],
)  # fmt: skip
def test_metrics_are_shown_in_their_units(name: str, value: float | None, text: str) -> None:
    assert show_value(name, value) == text


TIMES = st.floats(-1e6, 1e6, allow_nan=False)
POINTS = st.builds(
    Point, TIMES, st.floats(0, 1e4), st.none() | st.floats(0, 1) | st.just(float("nan")), st.none() | st.floats(0, 1e4)
)


def test_a_latency_too_small_for_a_scale_is_still_drawn() -> None:
    """The smallest number there is has a logarithm, but no power of ten above it does."""
    points = [Point(0.0, 1.0, 1.0, 5e-324), Point(5.0, 1.0, 1.0, 6024.0)]
    read(render_trial(TrialView("a", "b", "c", 0, "fail", journeys={"buy": points})))


@given(
    journeys=st.dictionaries(st.text(max_size=8), st.lists(POINTS, max_size=8), max_size=3),
    phases=st.lists(st.tuples(st.sampled_from(["baseline", "fault", "hand-over", "odd"]), TIMES), max_size=5),
    alerts=st.lists(st.builds(AlertView, st.text(max_size=40), TIMES, st.none() | TIMES), max_size=20),
    actions=st.lists(
        st.builds(ActionView, TIMES, st.text(max_size=8), st.text(max_size=8), st.none() | st.booleans()), max_size=8
    ),
    recovered=st.none() | TIMES,
)
def test_any_trial_can_be_drawn_within_its_frame(
    journeys: dict[str, list[Point]],
    phases: list[tuple[str, float]],
    alerts: list[AlertView],
    actions: list[ActionView],
    recovered: float | None,
) -> None:
    ordered = {name: sorted(points, key=lambda point: point.t) for name, points in journeys.items()}
    trial = TrialView(
        "a", "b", "c", 0, "fail", phases=sorted(phases, key=lambda each: each[1]), journeys=ordered, alerts=alerts,
        actions=actions, recovered_at=recovered,
    )  # fmt: skip
    document = render_trial(trial)
    read(document)
    assert "nan" not in re.sub(r"<(style|title|desc|text).*?</\1>", "", document, flags=re.DOTALL)
    for name in ("x", "x1", "x2"):
        assert all(
            0 <= float(value) <= 1120 for value in re.findall(rf' {name}="([^"]*)"', document.split("<table", 1)[0])
        )
