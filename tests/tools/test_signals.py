"""PromQL and alerts: requests as Prometheus expects them, answers as lines."""

import pytest
from aiohttp import web

from itbench.tools.catalog import toolbox

VECTOR = {"resultType": "vector", "result": [{"metric": {"__name__": "up", "job": "a"}, "value": [1.0, "1"]}]}
MATRIX = {"resultType": "matrix", "result": [{"metric": {}, "values": [[1.0, "1"], [2.0, "NaN"]]}]}
ALERTS = [
    {"labels": {"alertname": "B", "x": "1"}, "annotations": {"summary": "slow"}, "state": "firing", "activeAt": "t"},
    {"labels": {"alertname": "A"}, "annotations": {}, "state": "pending", "activeAt": "t"},
]


@pytest.fixture
async def prometheus(make_context):
    """A context with a server that answers three paths and remembers their parameters."""
    seen = []

    async def query(request):
        seen.append(dict(request.query))
        if request.query["query"] == "bad(":
            return web.json_response({"status": "error", "errorType": "bad_data", "error": "parse error"}, status=400)
        data = VECTOR if request.path.endswith("/query") else MATRIX
        return web.json_response({"status": "success", "data": data})

    async def alerts(request):
        return web.json_response({"status": "success", "data": {"alerts": ALERTS}})

    app = web.Application()
    app.add_routes(
        [web.get("/api/v1/query", query), web.get("/api/v1/query_range", query), web.get("/api/v1/alerts", alerts)]
    )
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    context = make_context(prometheus_url=f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/")
    context.seen = seen
    yield context
    await runner.cleanup()


async def test_an_instant_query_gives_one_line_per_series(prometheus):
    """Name, labels, value; the data come as data too."""
    result = await toolbox(prometheus).call("promql", {"query": "up"})
    assert result.text == 'up{job="a"} 1'
    assert result.structured == VECTOR


async def test_a_range_query_needs_all_three(prometheus):
    """start, end and step together; otherwise the call is explained, not guessed."""
    box = toolbox(prometheus)
    assert "needs start, end and step" in (await box.call("promql", {"query": "up", "start": 1})).text
    result = await box.call("promql", {"query": "up", "start": 1, "end": 2, "step": "1s"})
    assert result.text == "{} 1:1 2:NaN"
    assert prometheus.seen == [{"query": "up", "start": "1", "end": "2", "step": "1s"}]


async def test_an_error_of_prometheus_is_the_answer(prometheus):
    """Its own words."""
    result = await toolbox(prometheus).call("promql", {"query": "bad("})
    assert (result.ok, result.text) == (False, "promql: bad_data: parse error")


async def test_alerts_are_sorted_and_filtered(prometheus):
    """One line for each, with state, name, labels and summary."""
    box = toolbox(prometheus)
    assert [line.split()[1] for line in (await box.call("alerts")).text.splitlines()] == ["A", "B"]
    assert (await box.call("alerts", {"state": "firing"})).text == 'firing B since t {x="1"} slow'
