"""The seed of the noise in telemetry: one for the whole staging, another for each trial from hand-over on.

What is staged is shared by all trials of a seed, so nothing before hand-over may depend on the trial. All that draws noise holds
this one object; a draw depends on the seed and on what is drawn, never on earlier draws.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Noise:
    """The seed that is drawn with now."""

    seed: int = 0
