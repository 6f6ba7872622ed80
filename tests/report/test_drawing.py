"""The timeline as a file of its own."""

import re
from dataclasses import replace
from xml.etree import ElementTree

from itbench.report.drawing import draw_file
from itbench.report.model import ActionView, AlertView, Point, TrialView


def view() -> TrialView:
    points = [Point(float(t), 10.0, 1.0 if t < 100 else 0.4, 0.1) for t in range(0, 300, 5)]
    return TrialView(
        scenario="sre-0",
        title="t",
        agent="a",
        seed=0,
        outcome="pass",
        phases=[("baseline", 0.0), ("fault", 100.0), ("hand-over", 150.0), ("submit", 250.0)],
        journeys={"buy": points},
        alerts=[AlertView("Slow & <odd>", 120.0)],
        actions=[ActionView(160.0, "kubectl", "get pods")],
    )


def test_the_file_is_well_formed_and_brings_every_style_it_uses() -> None:
    """An image can load nothing: every colour and every class of the drawing is defined inside, for both schemes."""
    text = draw_file(view())
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert (root.get("width"), root.get("height")) == tuple((root.get("viewBox") or "").split()[2:])
    style = text[text.index("<style>") : text.index("</style>")]
    assert "prefers-color-scheme: dark" in style
    assert set(re.findall(r"var\((--[\w-]+)\)", text)) <= set(re.findall(r"(--[\w-]+):", style))
    classes = {name for element in root.iter() for name in (element.get("class") or "").split()}
    plain = {"timeline", "journey", "lane"} | {name for name in classes if name.endswith("label")}
    assert {name for name in classes - plain if f".{name}" not in style} == set()
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_alerts_of_the_time_before_the_first_phase_have_no_lane() -> None:
    early = AlertView("WhileStaging", -50.0, -1.0)
    assert "WhileStaging" not in draw_file(replace(view(), alerts=[early]))
    assert "WhileStaging" in draw_file(replace(view(), alerts=[replace(early, end=20.0)]))


def test_equal_trials_give_equal_files() -> None:
    assert draw_file(view()) == draw_file(view())
