"""PromQL with the semantics of Prometheus 3, evaluated on numpy over all steps of a query at once.

`parse` checks a query; `query_instant` and `query_range` evaluate it over a `MetricStore`. Called by the rules, the HTTP
API, the graders and the agents' tools.
"""

from itbench.telemetry.promql.engine import Options, Query, query_instant, query_range, query_steps
from itbench.telemetry.promql.syntax import parse
from itbench.telemetry.promql.values import QueryError, Result, Series, format_float

__all__ = [
    "Options",
    "Query",
    "QueryError",
    "Result",
    "Series",
    "format_float",
    "parse",
    "query_instant",
    "query_range",
    "query_steps",
]
