"""The `sql` tool: read-only SQL over the SQLite files of a task, such as a bill."""

import asyncio
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from itbench.tools.context import ToolContext
from itbench.tools.registry import Tool, ToolResult

MAX_ROWS = 500
MAX_STEPS = 200_000_000
"""Virtual machine instructions of one query; a count of work, not of seconds, so that equal queries end equally."""
_STEP = 100_000
_READS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_DESCRIBING = {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "database_list"}


def _authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION and second == "load_extension":
        return sqlite3.SQLITE_DENY
    if action in _READS or (action == sqlite3.SQLITE_PRAGMA and first in _DESCRIBING):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def query(file: Path, statement: str, limit: int = MAX_ROWS) -> tuple[list[str], list[tuple[Any, ...]], bool]:
    """Run one reading statement.

    Args:
        file: the SQLite file; opened read-only.
        statement: SELECT, WITH ... SELECT, or a describing PRAGMA.
        limit: rows returned at most.

    Returns:
        Column names, rows, and whether there were more rows.

    Raises:
        sqlite3.Error: the statement is wrong, writes, or works too long.
    """
    connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    left = [MAX_STEPS // _STEP]

    def count() -> int:
        left[0] -= 1
        return left[0] < 0

    try:
        connection.execute("PRAGMA query_only=1")
        connection.set_authorizer(_authorize)
        connection.set_progress_handler(count, _STEP)
        cursor = connection.execute(statement)
        rows = cursor.fetchmany(limit + 1)
        return [column[0] for column in cursor.description or ()], rows[:limit], len(rows) > limit
    finally:
        connection.close()


def _table(columns: list[str], rows: list[tuple[Any, ...]]) -> str:
    return "\n".join("\t".join("" if cell is None else str(cell) for cell in row) for row in [tuple(columns), *rows])


async def _sql(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    databases = context.endpoints.databases
    name = arguments.get("database") or next(iter(databases), "")
    if name not in databases:
        return ToolResult(f"sql: no database {name!r}; there are {', '.join(databases) or 'none'}", ok=False)
    try:
        columns, rows, more = await asyncio.to_thread(query, Path(databases[name]), arguments["query"])
    except (sqlite3.Error, sqlite3.Warning) as error:
        reason = "the query works too long" if "interrupted" in str(error) else str(error)
        return ToolResult(f"sql: {reason}", ok=False)
    text = _table(columns, rows) + (f"\n... more than {MAX_ROWS} rows; aggregate or LIMIT" if more else "")
    return ToolResult(text, structured={"columns": columns, "rows": [list(row) for row in rows]})


SQL = Tool(
    name="sql",
    description="Run one read-only SQL statement (SQLite) on a database of the task, such as the bill. "
    "`SELECT name, sql FROM sqlite_master` shows the tables.",
    input_schema={
        "type": "object",
        "required": ["query"],
        "additionalProperties": False,
        "properties": {"query": {"type": "string", "minLength": 1}, "database": {"type": "string"}},
    },
    call=_sql,
    read_only=True,
)
