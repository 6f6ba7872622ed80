"""The error tree: what failed, the value seen, what was expected, what to do next.

ItbenchError
├── UsageError        the caller asked for something impossible      (exit code 2)
├── EnvironmentFault  the place where a trial runs let us down       (exit code 3)
└── ScenarioDefect    a scenario, fault, app or card is unsound      (exit code 2)
"""


class ItbenchError(Exception):
    """Base of every error raised on purpose; its text is one clear line.

    Args:
        what: what failed, as a short sentence without a full stop.
        seen: the offending value, if there is one.
        expected: what would have been right.
        hint: what to do next.
    """

    exit_code = 3

    def __init__(self, what: str, *, seen: object = None, expected: str = "", hint: str = "") -> None:
        self.what, self.seen, self.expected, self.hint = what, seen, expected, hint
        super().__init__(self._line())

    def _line(self) -> str:
        text = self.what
        if self.seen is not None:
            text += f": {self.seen!r}"
        if self.expected:
            text += f"; expected {self.expected}"
        if self.hint:
            text += f"; {self.hint}"
        return text


class UsageError(ItbenchError):
    """The caller asked for something that cannot be done as asked."""

    exit_code = 2


class EnvironmentFault(ItbenchError):
    """The environment of a trial failed; never the agent's fault.

    Args:
        cause: the row of the cause table (`stage_failed`, `environment_lost`, ...).
    """

    def __init__(
        self, what: str, *, cause: str = "environment_lost", seen: object = None, expected: str = "", hint: str = ""
    ) -> None:
        self.cause = cause
        super().__init__(what, seen=seen, expected=expected, hint=hint)


class ScenarioDefect(ItbenchError):
    """A document of the library is wrong; raised when it is loaded, linted or proven."""

    exit_code = 2
