"""The work queue: first in, first out, once each, on time."""

from hypothesis import given
from hypothesis import strategies as st

from itbench.kube.queue import WorkQueue


def drain(queue: WorkQueue) -> list[str]:
    found = []
    while len(queue):
        found.append(queue.pop()[2])
    return found


def test_items_come_once_in_the_order_of_their_first_addition() -> None:
    queue = WorkQueue()
    for name in "abcab":
        queue.add(("x", "", name))
    assert drain(queue) == ["a", "b", "c"]


def test_of_several_times_the_earliest_counts_and_popping_drops_the_timer() -> None:
    queue = WorkQueue()
    for at in (9.0, 3.0, 5.0):
        queue.add_at(("x", "", "a"), at)
    assert queue.due() == 3.0
    queue.add(("x", "", "a"))
    queue.pop()
    assert queue.due() == float("inf")


def test_failures_wait_twice_as_long_each_time_up_to_a_limit() -> None:
    queue, item, waits = WorkQueue(), ("x", "", "a"), []
    for _ in range(30):
        queue.fail(item, 0.0)
        waits.append(queue.due())
        queue.release(queue.due())
        queue.pop()
    assert waits[:4] == [0.005, 0.01, 0.02, 0.04] and waits[-1] == 1000.0
    queue.succeed(item)
    assert queue.failures(item) == 0


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 5))))
def test_a_restored_queue_gives_the_same_order(entries: list[tuple[str, int]]) -> None:
    queue = WorkQueue()
    for name, at in entries:
        item = ("x", "", name)
        if at == 0:
            queue.add(item)
        else:
            queue.add_at(item, float(at))
    other = WorkQueue.load(queue.save())
    assert other.save() == queue.save()
    for now in range(6):
        queue.release(float(now))
        other.release(float(now))
        assert drain(queue) == drain(other)
