"""Shows what a run is doing: one line that rewrites itself in a terminal, plain lines elsewhere, JSON lines for programs."""

import json
import sys
import time
from typing import Any, TextIO

from itbench.run.jobs import Job

PHASES = {
    "staging": "standing up",
    "baseline": "probing the baseline",
    "injecting": "injecting",
    "symptom": "waiting for the symptom",
    "hand_over": "handing over",
    "agent": "agent at work",
    "settling": "settling",
    "challenging": "challenging",
    "grading": "grading",
    "done": "done",
}


class Progress:
    """Progress of several jobs.

    Args:
        total: number of jobs.
        json_lines: print JSON lines on standard output instead of text on standard error.
    """

    def __init__(self, total: int, *, json_lines: bool = False, stream: TextIO | None = None) -> None:
        self.total, self.json_lines = total, json_lines
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty() and not json_lines
        self.done = 0
        self.start = time.monotonic()

    def __call__(self, job: Job, record: dict[str, Any]) -> None:
        """A trial changed its state, or says something."""
        if self.json_lines:
            print(
                json.dumps(
                    {"type": "progress", "scenario": job.scenario, "agent": job.agent, "trial": job.trial} | record
                ),
                flush=True,
            )
            return
        text = record.get("say") or PHASES.get(str(record.get("state")), "")
        if not text:
            return
        line = f"{time.monotonic() - self.start:6.1f} s  {job.label}: {text}"
        if record.get("detail") and record.get("event") == "failed":
            line += f" ({record['detail']})"
        if self.live:
            self.stream.write(f"\r\x1b[2K[{self.done}/{self.total}] {line}"[:200])
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def finished(self, text: str) -> None:
        """A job ended: a line that stays."""
        self.done += 1
        if self.json_lines:
            return
        self.stream.write(("\r\x1b[2K" if self.live else "") + f"{time.monotonic() - self.start:6.1f} s  {text}\n")
        self.stream.flush()
