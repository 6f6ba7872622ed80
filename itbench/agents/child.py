"""The child process of a Python agent: loads the function, gives it task and tools, hands in what it returns.

Started by `itbench.agents.python` as `python -m itbench.agents.child PLACE FUNCTION [WHERE]`.
"""

import asyncio
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from itbench.core.documents.task import Submission
from itbench.tools.remote import Connection, RemoteToolbox

NOT_LOADED, CRASHED, NO_ANSWER = 71, 70, 72
"""Exit codes: the function could not be loaded; it raised; what it returned is no submission."""


def load(place: str, function: str, where: str = "") -> Callable[..., Any]:
    """The function.

    Args:
        place: a file ending in `.py`, or a module's name.
        function: its name there.
        where: path of the module's top package or file, if it is not installed. Its folder may be unlistable, so it is
            loaded by path.
    """
    if place.endswith(".py"):
        sys.path.insert(0, str(Path(place).parent))
        return _function(_by_path("agent_under_test", Path(place)), function)
    top = place.split(".", 1)[0]
    if where and top not in sys.modules:
        path = Path(where)
        _by_path(top, path / "__init__.py" if path.is_dir() else path)
    return _function(importlib.import_module(place), function)


def _by_path(name: str, file: Path) -> Any:
    folders = [str(file.parent)] if file.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _function(module: Any, name: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if not callable(found):
        names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise ImportError(f"{module.__name__} has no function {name!r}; it has {', '.join(names) or 'none'}")
    if isinstance(found, type):
        method: Callable[..., Any] = found().solve
        return method
    return found  # type: ignore[no-any-return]


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer


def _solve(function: Callable[..., Any]) -> int:
    """Call the function outside of any event loop, so that a plain one may run its own."""
    connection = Connection.from_environment()
    answer = function(connection.task(), RemoteToolbox(connection))
    if inspect.isawaitable(answer):
        answer = asyncio.run(_awaited(answer))
    if answer is None:
        return 0
    if not isinstance(answer, Submission | Mapping):
        sys.stderr.write(f"the function returned {type(answer).__name__}; expected a Submission, a mapping or None\n")
        return NO_ANSWER
    data = answer.model_dump(mode="json", by_alias=True) if isinstance(answer, Submission) else answer
    result = connection.submit(data)
    if not result.ok:
        sys.stderr.write(result.text + "\n")
    return 0 if result.ok else NO_ANSWER


def main() -> int:
    """Exit code 0, `NOT_LOADED`, `CRASHED` or `NO_ANSWER`; the traceback goes to standard error."""
    try:
        function = load(*sys.argv[1:4])
    except BaseException:
        traceback.print_exc()
        return NOT_LOADED
    try:
        return _solve(function)
    except Exception:
        traceback.print_exc()
        return CRASHED


if __name__ == "__main__":
    sys.exit(main())
