"""SQL over a task's databases: reading only, bounded work, clear errors."""

import sqlite3

import pytest

from itbench.tools import sql
from itbench.tools.catalog import toolbox


@pytest.fixture
def bill(tmp_path):
    """A bill of three rows."""
    file = tmp_path / "bill.sqlite"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE focus (service TEXT, cost REAL)")
    connection.executemany("INSERT INTO focus VALUES (?, ?)", [("ec2", 1.5), ("s3", 2.0), ("ec2", None)])
    connection.commit()
    connection.close()
    return file


async def test_a_query_answers_with_a_table(make_context, bill):
    """Header, tab-separated rows, and the same as data; one database needs no name."""
    box = toolbox(make_context(databases={"bill": str(bill)}))
    result = await box.call("sql", {"query": "SELECT service, sum(cost) AS c FROM focus GROUP BY 1 ORDER BY 1"})
    assert result.text == "service\tc\nec2\t1.5\ns3\t2.0"
    assert result.structured == {"columns": ["service", "c"], "rows": [["ec2", 1.5], ["s3", 2.0]]}


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM focus",
        "DROP TABLE focus",
        "INSERT INTO focus VALUES ('x', 1)",
        "ATTACH '/tmp/x.db' AS x",
        "PRAGMA query_only=0",
        "CREATE TEMP TABLE t (a)",
        "SELECT load_extension('x')",
        "SELECT 1; SELECT 2",
        "SELEC 1",
        "VACUUM INTO '/tmp/stolen.db'",
    ],
)
async def test_anything_but_reading_is_refused(make_context, bill, query):
    """The file stays as it was and the answer says why."""
    before = bill.read_bytes()
    result = await toolbox(make_context(databases={"bill": str(bill)})).call("sql", {"query": query})
    assert not result.ok
    assert result.text.startswith("sql: ")
    assert bill.read_bytes() == before


async def test_endless_queries_end(make_context, bill, monkeypatch):
    """Work is counted, so an endless query ends with a clear line."""
    monkeypatch.setattr(sql, "MAX_STEPS", 1_000_000)
    query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    result = await toolbox(make_context(databases={"bill": str(bill)})).call("sql", {"query": query})
    assert (result.ok, result.text) == (False, "sql: the query works too long")


async def test_more_rows_than_wanted_are_announced(make_context, bill, monkeypatch):
    """The agent learns that there is more."""
    query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 600) SELECT i FROM n"
    result = await toolbox(make_context(databases={"bill": str(bill)})).call("sql", {"query": query})
    assert "more than 500 rows" in result.text
    assert len(result.structured["rows"]) == 500


async def test_an_unknown_database_is_named(make_context, bill):
    """With the ones there are."""
    box = toolbox(make_context(databases={"bill": str(bill)}))
    assert "there are bill" in (await box.call("sql", {"query": "SELECT 1", "database": "bil"})).text
