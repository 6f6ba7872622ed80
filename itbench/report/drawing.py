"""The incident timeline as an SVG file of its own, for pages that show it as an image. Called by `scripts/draw_timeline.py`."""

from itbench.report.model import TrialView
from itbench.report.style import STYLE
from itbench.report.timeline import draw_timeline


def _style() -> str:
    """Colours of both schemes and the rules of drawings, from the page's own style sheet."""
    colours = STYLE[: STYLE.index("* {")]
    rules = STYLE[STYLE.index("svg text {") : STYLE.index("@media print")]
    return colours + rules


def draw_file(view: TrialView) -> str:
    """The timeline of a trial as a whole file: its style inlined, following the reader's light or dark scheme."""
    drawing = draw_timeline(view)
    head, rest = drawing.split(">", 1)
    width, height = head.split('viewBox="0 0 ', 1)[1].split('"', 1)[0].split()
    size = f'xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
    ground = f'<rect width="{width}" height="{height}" rx="6" style="fill: var(--bg)"/>'
    return f"{head} {size}><style>{_style()}</style>{ground}{rest}\n"
