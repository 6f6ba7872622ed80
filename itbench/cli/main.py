"""The command line: finds the verb, runs it, turns errors into one line and an exit code.

Exit codes: 0 done, whatever the agent scored; 1 a gate asked for failed; 2 bad usage; 3 environment trouble; 130 interrupted.
"""

import argparse
import gc
import importlib
import signal
import sys
from collections.abc import Sequence

from itbench import __version__
from itbench.core.errors import ItbenchError
from itbench.run.early import discard, prepare

VERBS: dict[str, str] = {
    "list": "the library: what scenarios there are",
    "show": "one scenario, without its truth",
    "run": "stand up, break, hand over, grade, report",
    "prove": "is a scenario sound?",
    "up": "leave a broken estate running, to play with",
    "down": "end estates that `up` left running",
    "regrade": "grade the evidence of a run again",
    "report": "write the HTML report of a run",
    "bundle": "a run as one file that others can check",
    "verify": "does a bundle hold what its evidence says?",
    "compare": "two agents on the same scenarios: which is better, and how sure that is",
    "plan": "how many scenarios and trials for which difference",
    "audit": "compliance checks on your own cluster, without an agent",
    "kube": "serve an empty embedded cluster",
    "telemetry": "serve recorded metrics and logs",
    "metrics": "explain the metrics",
    "schema": "JSON Schema of the documents",
    "submit": "hand in an answer (inside a trial)",
    "tool": "call a tool (inside a trial)",
    "task": "print the task (inside a trial)",
}
"""Each verb is the module of that name in `itbench.cli`, with `add_arguments(parser)` and `run(arguments) -> int`."""

WORKING = ("run", "prove", "verify")
"""Verbs that run trials: what those need is imported in another process while the verb itself is."""

INSIDE = ("submit", "tool", "task")
"""Verbs for agents, which `itbench.agents.inside` carries out."""


class _Parser(argparse.ArgumentParser):
    """Errors in one line, with the way to help."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def _overview() -> _Parser:
    lines = "\n".join(f"  {verb:<9} {what}" for verb, what in VERBS.items())
    parser = _Parser(
        prog="itbench",
        usage="itbench VERB [ARGUMENTS]",
        description="Finds out whether an AI agent can be trusted with production IT.",
        epilog=f"verbs:\n{lines}\n\n`itbench VERB --help` explains one, with examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="help", help="this text")
    parser.add_argument("--version", action="version", version=f"itbench {__version__}")
    parser.add_argument("verb", nargs="?", help=argparse.SUPPRESS)
    return parser


def _run_verb(verb: str, rest: Sequence[str]) -> int:
    if verb in WORKING and not {"-h", "--help"} & set(rest):
        prepare()
    gc.disable()  # imports leave no garbage worth looking for
    module = importlib.import_module(f"itbench.cli.{verb}_")
    gc.freeze()
    gc.enable()
    doc, _, examples = (module.__doc__ or "").partition("\n\n")
    parser = _Parser(
        prog=f"itbench {verb}",
        description=doc.strip(),
        epilog=examples.rstrip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    code: int = module.run(parser.parse_args(list(rest)))
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    overview = _overview()
    if not words or words[0].startswith("-"):
        overview.parse_args(words)
        overview.print_help()
        return 2
    verb, rest = words[0], words[1:]
    if verb not in VERBS:
        from itbench.core.documents.base import nearest

        hint = nearest(verb, list(VERBS))
        print(f"itbench: no such verb: {verb!r}; {hint or 'see itbench --help'}", file=sys.stderr)
        return 2
    # A polite end by a program is one by Ctrl-C: what was started ends with it.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        if verb in INSIDE:
            from itbench.agents import inside

            return inside.main(words)
        return _run_verb(verb, rest)
    except ItbenchError as error:
        print(f"itbench {verb}: {error}", file=sys.stderr)
        return error.exit_code
    except PermissionError as error:
        print(f"itbench {verb}: not allowed: {error.filename or error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print(f"itbench {verb}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    finally:
        discard()


if __name__ == "__main__":
    sys.exit(main())
