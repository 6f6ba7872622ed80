"""Which failures a client tries again."""

import pytest

from itbench.world.flow import Edge, Flow, FlowSpec, Station


def attempts(retry_errors: bool, kind: str) -> tuple[float, float]:
    """Attempts and final failures per call at a service that always fails that way."""
    spec = FlowSpec(
        stations=(Station("front", 1, 4, 4.0), Station("back", 1, 4, 4.0)),
        edges=(
            Edge("root", -1, 0, 0.001),
            Edge("call", 0, 1, 0.001, timeout_s=1.0, retries=2, retry_errors=retry_errors),
        ),
    )
    flow = Flow(spec)
    flow.set_ready(0, 0, 1.0)
    flow.set_ready(1, 0, 1.0)
    flow.set_fault(1, 1.0, kind)
    flow.set_rate(0, 100.0)
    flow.advance(60.0)
    first = flow.counter("first")[1]
    return flow.counter("attempts")[1] / first, flow.counter("failed")[1] / first


@pytest.mark.parametrize(
    ("retry_errors", "kind", "expected"),
    [(True, "error", 3.0), (False, "error", 1.0), (False, "refuse", 3.0), (False, "hang", 3.0)],
)
def test_an_error_is_an_answer_and_only_tried_again_when_the_client_says_so(retry_errors, kind, expected):
    tried, failed = attempts(retry_errors, kind)
    assert tried == pytest.approx(expected, rel=0.1)
    assert failed == pytest.approx(1.0, rel=0.1)
