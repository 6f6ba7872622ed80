"""Rendering the page."""

import pytest

from itbench.core.errors import ScenarioDefect
from itbench.run.page import render


def test_known_values_are_put_in_and_other_braces_stay():
    assert render('since {at.symptom}: {"a": 1}', {"at.symptom": "14:01"}) == 'since 14:01: {"a": 1}'


def test_an_unknown_value_names_the_nearest_known_one():
    with pytest.raises(ScenarioDefect, match=r"at\.sympton.*did you mean 'at\.symptom'"):
        render("{at.sympton}", {"at.symptom": "14:01"})
