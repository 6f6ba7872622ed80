"""The client of `itbench.tools.http`: what an agent in a child process holds, and what `itbench tool` and `itbench submit` use.

Only the standard library, so that a child starts quickly and needs nothing else.
"""

import asyncio
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from itbench.core.documents.task import Submission, Task, ToolSpec
from itbench.core.errors import EnvironmentFault, UsageError
from itbench.tools.registry import ToolResult

TIMEOUT_S = 4000.0
"""Longer than any tool's own deadline, which answers first."""


class Connection:
    """Blocking calls to the tool server of the trial that this process works for."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url.rstrip("/"), token
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> "Connection":
        """The connection that ITBENCH_TOOLS_URL and ITBENCH_TOOLS_TOKEN describe; raises UsageError outside a trial."""
        url, token = environ.get("ITBENCH_TOOLS_URL", ""), environ.get("ITBENCH_TOOLS_TOKEN", "")
        if not url:
            raise UsageError(
                "not inside a trial",
                expected="ITBENCH_TOOLS_URL",
                hint="agents have it set, and `itbench up` prints it",
            )
        return cls(url, token)

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """One request; raises EnvironmentFault when the server is gone, UsageError when it refuses."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", "application/json")
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as error:
            text = error.read().decode("utf-8", "replace")
            raise UsageError(f"{method} {path}: {error.code}", seen=text[:300]) from error
        except (OSError, ValueError) as error:
            raise EnvironmentFault(
                f"{method} {path}: no answer from the tools ({error})", cause="tool_server_crash"
            ) from error

    def task(self) -> Task:
        """The task."""
        return Task.model_validate(self.request("GET", "/task"))

    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools there are."""
        return tuple(ToolSpec.model_validate(item) for item in self.request("GET", "/tools"))

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool."""
        return ToolResult(**self.request("POST", f"/tools/{name}", dict(arguments)))

    def submit(self, submission: Mapping[str, Any]) -> ToolResult:
        """Hand in an answer, as JSON data."""
        return ToolResult(**self.request("POST", "/submit", dict(submission)))


class RemoteToolbox:
    """The `Tools` of a Python agent in a child process."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._specs: tuple[ToolSpec, ...] | None = None

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools there are."""
        if self._specs is None:
            self._specs = self.connection.tools()
        return self._specs

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """Call a tool without blocking the event loop."""
        return await asyncio.to_thread(self.connection.call, name, arguments or {})

    async def submit(self, submission: Submission) -> ToolResult:
        """Hand in an answer."""
        data = submission.model_dump(mode="json", by_alias=True)
        return await asyncio.to_thread(self.connection.submit, data)
