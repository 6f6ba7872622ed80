"""Lets the tests of the control plane import their fake kubelet."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
