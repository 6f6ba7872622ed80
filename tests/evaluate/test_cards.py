"""Metric cards and their implementations."""

import inspect

import pytest

from itbench.evaluate import cards
from itbench.library.store import Library

CARDS = Library().cards()


def test_every_card_has_an_implementation_and_every_implementation_a_card():
    assert set(CARDS) == set(cards.IMPLEMENTATIONS)


@pytest.mark.parametrize("name", sorted(CARDS))
def test_the_worked_examples_of_a_card_come_out(name):
    for example in CARDS[name].examples:
        value = cards.IMPLEMENTATIONS[name](**example.inputs)
        expected = (
            pytest.approx(example.expected, rel=example.approx)
            if isinstance(example.expected, float)
            else example.expected
        )
        assert value == expected


@pytest.mark.parametrize("name", sorted(CARDS))
def test_a_cards_file_name_is_its_name_and_its_implementation_is_documented(name):
    assert CARDS[name].name == name.split("/")[1]
    assert inspect.getdoc(cards.IMPLEMENTATIONS[name])
