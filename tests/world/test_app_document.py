"""The app document: its own example is valid, and wrong names are told with what would have been right."""

from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from itbench.core.documents import app as module
from itbench.core.documents.app import App, FlagEffect, Journey, Program, Service

EXAMPLE: dict[str, Any] = yaml.safe_load((module.__doc__ or "").split("```yaml")[1].split("```")[0])


def minimal() -> dict[str, Any]:
    """Two services and a journey."""
    return {
        "schema": "itbench/app/v1",
        "id": "toy",
        "namespace": "toy",
        "services": {
            "deployment/web": {
                "operations": {
                    "GET /": {
                        "service_ms": 5,
                        "calls": [{"to": "deployment/api", "operation": "Get", "address": {"env": "API_ADDR"}}],
                    }
                }
            },
            "deployment/api": {"operations": {"Get": {"service_ms": 10}}},
        },
        "journeys": {
            "home": {
                "entry": {"service": "web", "port": 80, "workload": "deployment/web", "operation": "GET /"},
                "rate": 5,
            }
        },
    }


@pytest.mark.parametrize("name", EXAMPLE["programs"])
def test_programs_of_the_documented_example_are_valid(name: str) -> None:
    assert Program.model_validate(EXAMPLE["programs"][name]).tags


@pytest.mark.parametrize("name", EXAMPLE["services"])
def test_services_of_the_documented_example_are_valid(name: str) -> None:
    assert Service.model_validate(EXAMPLE["services"][name]).operations


def test_flags_and_journeys_of_the_documented_example_are_valid() -> None:
    effects = [FlagEffect.model_validate(e) for items in EXAMPLE["flags"]["effects"].values() for e in items]
    journeys = [Journey.model_validate(j) for j in EXAMPLE["journeys"].values()]
    assert effects[0].errors == "value"
    assert journeys[1].follows == "buy"


def test_a_minimal_app_is_valid() -> None:
    assert App.model_validate(minimal()).operation("deployment/api", "Get") is not None


def test_a_call_to_an_unknown_operation_names_the_known_ones() -> None:
    data = minimal()
    data["services"]["deployment/web"]["operations"]["GET /"]["calls"][0]["operation"] = "Got"
    with pytest.raises(ValidationError, match=r"no operation 'Got' of 'deployment/api'; known: Get"):
        App.model_validate(data)


def test_a_journey_through_an_unknown_workload_is_refused() -> None:
    data = minimal()
    data["journeys"]["home"]["entry"]["workload"] = "deployment/wbe"
    with pytest.raises(ValidationError, match=r"journey home: no operation 'GET /' of 'deployment/wbe'"):
        App.model_validate(data)


def test_a_bare_off_means_no_limit() -> None:
    data = minimal()
    data["services"]["deployment/web"]["operations"]["GET /"]["calls"][0]["timeout_s"] = False
    call = App.model_validate(data).services["deployment/web"].operations["GET /"].calls[0]
    assert call.timeout_s == "off"


def test_a_setting_has_exactly_one_source() -> None:
    with pytest.raises(ValidationError, match="exactly one of"):
        module.Setting.model_validate({"env": "A", "configmap": "b", "key": "c"})
