"""What the driver of incidents puts on record."""

from types import SimpleNamespace

from itbench.core.ids import Ids
from itbench.run.sre import SreDriver
from itbench.telemetry.alertmanager import Silences


def test_what_was_silenced_since_hand_over_is_evidence() -> None:
    """Silences of the agent are kept with matchers and times, also when ended; what was there before is not the agent's."""
    silences = Silences(Ids(0))
    matchers = [{"name": "job", "value": "a|b", "isRegex": True}]
    silences.set({"matchers": matchers, "createdBy": "platform"}, 50.0, 90.0, 50.0)
    ident = silences.set({"matchers": matchers, "createdBy": "me", "comment": "quiet"}, 150.0, 900.0, 150.0)
    silences.expire(ident, 200.0)
    driver = SreDriver.__new__(SreDriver)
    driver.environment = SimpleNamespace(silences=silences.all)  # type: ignore[assignment]
    driver._handed_over = 100.0
    assert driver._silences() == [
        {"matchers": ["job=~a|b"], "start": 150.0, "end": 200.0, "by": "me", "comment": "quiet"}
    ]
