"""Draws the incident timeline of one trial as an SVG file: python scripts/draw_timeline.py RUN/trials/TRIAL docs/timeline.svg"""

import sys
from pathlib import Path

from itbench.report.drawing import draw_file
from itbench.run.files import TrialFolder
from itbench.run.views import trial_view

if __name__ == "__main__":
    folder, file = map(Path, sys.argv[1:])
    file.write_text(draw_file(trial_view(TrialFolder(folder))))
