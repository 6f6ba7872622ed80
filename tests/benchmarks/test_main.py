"""Choosing benchmarks."""

import sys
from types import SimpleNamespace

import benchmarks.__main__ as bench


def test_an_unknown_benchmark_is_one_line_that_names_the_known_ones(capsys):
    assert bench.main(["nosuch"]) == 2
    assert "no such benchmark: 'nosuch'; expected one of" in capsys.readouterr().err


def test_a_benchmark_that_reads_options_does_not_see_the_words_of_the_command(monkeypatch):
    seen = []
    module = SimpleNamespace(main=lambda: seen.append(list(sys.argv)))
    monkeypatch.setattr(bench.importlib, "import_module", lambda name: module)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "flow", "kube_api"])
    assert bench.main(["flow", "kube_api"]) == 0
    assert seen == [["benchmarks.flow"], ["benchmarks.kube_api"]]
