"""Every scenario of the library as text: it loads with all vocabularies, gives nothing away, and speaks of things that exist."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from itbench.core.documents.app import App
from itbench.core.documents.base import load
from itbench.core.documents.scenario import Scenario, Use
from itbench.core.documents.vocabulary import canonical_entity
from itbench.evaluate.slo import ChallengeSpec
from itbench.library.store import Library
from itbench.run.known import vocabulary

LIBRARY = Library((), vocabulary())
ALL = list(LIBRARY.scenario_files)
SHIPPED = {"sre-1", "sre-2", "sre-7", "sre-12", "sre-18", "sre-30", "sre-91", "sre-152"}
QUADRUPLE = ("sre-12", "sre-30", "sre-91", "sre-152")
"""One page and one gate for all four: only what the agent measures tells them apart."""
LOUD = re.compile(r"\b(fault|chaos|stress\w*|inject\w*|decoy|twin|benchmark|itbench|scenario)\b", re.IGNORECASE)
COMMON = {
    "service",
    "deployment",
    "env",
    "on",
    "off",
    "missing",
    "wrong",
    "cut",
    "image",
    "node",
    "too",
    "cpu",
    "tag",
    "of",
    "out",
}
"""Words of ids that say nothing alone; together they do, so the whole id and its words in a row stay forbidden."""


def scenario(identifier: str) -> Scenario:
    """A scenario of the library, validated."""
    return LIBRARY.scenario(identifier).scenario


def with_app() -> list[str]:
    """Ids of scenarios in which an app stands."""
    return [identifier for identifier in ALL if scenario(identifier).environment.app is not None]


def app_of(document: Scenario) -> App:
    """The behaviour of its app."""
    assert document.environment.app is not None
    return load(App, LIBRARY.app_folder(document.environment.app.id) / "app.yaml")


def objects_of(document: Scenario) -> dict[str, dict[str, Any]]:
    """Every object of the app's manifests, by entity."""
    assert document.environment.app is not None
    found = {}
    app = LIBRARY.app_folder(document.environment.app.id)
    for file in (
        *(app / "manifests").glob("*.yaml"),
        *(app.parents[1] / "roles" / "platform" / "files").glob("*.yaml"),
    ):
        for item in filter(None, yaml.load_all(file.read_text(), yaml.CSafeLoader)):
            meta = item["metadata"]
            names = (item["kind"].lower(), meta.get("namespace", ""), meta["name"])
            found["/".join(filter(None, names))] = item
    return found


def uses(document: Scenario) -> Iterator[tuple[str, Use]]:
    """Faults and noise with the part of the library they come from."""
    yield from (("faults", use) for use in document.faults)
    yield from (("noise", use) for use in document.noise)


def tell_tales(document: Scenario) -> set[str]:
    """What would name the cause: ids and families, mechanisms, what the faults set."""
    causes = [cause.mechanism for cause in document.truth.root_causes]
    causes += [other.mechanism for cause in document.truth.root_causes for other in cause.alternatives]
    names = {*ALL, *causes, *(use.id for _, use in uses(document)), *([document.family] if document.faults else [])}
    words = {
        word for name in (*causes, *(use.id for use in document.faults)) if document.faults for word in name.split("-")
    }
    given = {value for _, use in uses(document) for value in use.args.values() if isinstance(value, str)}
    targets = {part for use in document.faults for part in use.target.split("/")}
    targets |= {app_of(document).namespace} if document.environment.app else set()
    long_enough = {value for value in given - targets if len(value) > 3}
    return names | {name.replace("-", " ") for name in names} | (words - COMMON) | long_enough


def test_the_shipped_incidents_are_in_the_library() -> None:
    """Nobody can lose a scenario by renaming a folder: the id stands in the folder's name."""
    assert set(ALL) >= SHIPPED
    for identifier in ALL:
        found = LIBRARY.scenario(identifier)
        number = found.scenario.id.split("@")[0].split("-", 1)[1]
        assert found.folder.name.startswith(f"{number}-")


@pytest.mark.parametrize("identifier", ALL)
def test_the_page_gives_nothing_away(identifier: str) -> None:
    """The page sounds like production and names neither the cause, nor what was set, nor the benchmark."""
    document = scenario(identifier)
    page = document.page.lower()
    assert page.strip()
    assert LOUD.findall(page) == []
    assert [word for word in sorted(tell_tales(document)) if re.search(rf"\b{re.escape(word.lower())}\b", page)] == []


def test_the_quadruple_shares_page_and_gate() -> None:
    """sre-12 and its self-recovering twins are told apart by measuring only; each is handed over 20 s after its trigger ends."""
    first, *twins = map(scenario, QUADRUPLE)
    for other in twins:
        assert other.page == first.page
        assert (other.task, other.environment.nodes, other.level) == (first.task, first.environment.nodes, other.level)
        assert other.truth.verdict == "recovered" and not other.truth.root_causes
    for each in (first, *twins):
        assert each.symptom.self_recovering
        assert each.symptom.hand_over == float(each.faults[0].args["duration"].removesuffix("s")) + 20.0
    assert not re.search(r"\d", re.sub(r"\{[^}]*\}|#\d+", "", first.page))


@pytest.mark.parametrize("identifier", with_app())
def test_wrong_repairs_name_a_check_of_their_scenario(identifier: str) -> None:
    """A decoy is caught by a check that the scenario has, each wrong repair does something, and a right one exists."""
    document = scenario(identifier)
    kinds = {entry.kind for entry in document.checks}
    assert document.repairs and document.decoys
    assert [decoy.name for decoy in document.decoys if not decoy.steps] == []
    assert [decoy.name for decoy in document.decoys if decoy.caught_by not in kinds] == []
    names = [plan.name for plan in (*document.repairs, *document.decoys)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("identifier", ALL)
def test_everything_applied_can_be_taken_back(identifier: str) -> None:
    """Each fault and piece of noise has tasks that apply and revert it, and is meant for the kind of its target."""
    for part, use in uses(scenario(identifier)):
        folder = LIBRARY.folder(part, use.id, part)
        document = LIBRARY.fault(use.id, part)
        for name in ("inject.yml", "revert.yml"):
            tasks = yaml.safe_load((folder / name).read_text())
            assert isinstance(tasks, list) and (tasks or part == "noise"), (use.id, name)
        assert not document.targets or use.target.split("/")[0] in document.targets, (use.id, use.target)


@pytest.mark.parametrize("identifier", with_app())
def test_targets_and_truths_exist(identifier: str) -> None:
    """Targets, root causes, chains, challenges and exact allowances name objects of the manifests or journeys of the app."""
    document = scenario(identifier)
    known = {*objects_of(document), *(f"journey/{name}" for name in app_of(document).journeys)}
    known |= {use.target for part, use in uses(document) if part == "faults" and LIBRARY.fault(use.id).makes}
    known |= {"node/*", *(f"node/node-{number + 1}" for number in range(document.environment.nodes))}
    named = [use.target for _, use in uses(document) if use.target]
    named += [cause.entity for cause in document.truth.root_causes]
    named += [other.entity for cause in document.truth.root_causes for other in cause.alternatives]
    named += [entity for link in document.truth.chain for entity in link]
    named += [pattern for pattern in document.allow if "*" not in pattern]
    for entry in document.checks:
        if entry.kind == "challenge":
            spec = ChallengeSpec.model_validate(entry.spec)
            named += filter(None, (spec.delete_pod, spec.roll_node))
            assert spec.replay is None or any(LIBRARY.fault(use.id).trigger for use in document.faults)
    assert {canonical_entity(name) for name in named} - known == set()


@pytest.mark.parametrize("identifier", with_app())
def test_images_are_known_exactly_where_they_should_be(identifier: str) -> None:
    """Releases of noise bring images that the registry has; the release that cannot be pulled brings one that it has not."""
    document = scenario(identifier)
    images = {f"{program.image}:{tag}" for program in app_of(document).programs.values() for tag in program.tags}
    for _, use in uses(document):
        if "tag" in use.args:
            tag = use.args["tag"] + (f"-{use.target.rpartition('/')[2]}" if "also" in use.args else "")
            assert (f"{use.args['image']}:{tag}" in images) == (use.id != "image-tag-missing"), use.id


@pytest.mark.parametrize("identifier", with_app())
def test_demand_and_levels_are_of_known_journeys(identifier: str) -> None:
    """Load is set for journeys that the app has, and every journey that people feel has a level."""
    app, document = app_of(scenario(identifier)), scenario(identifier)
    assert set(document.environment.load.journeys) <= set(app.journeys)
    assert set(app.slo) <= set(app.journeys) and app.slo


def by_default(number: Any) -> float:
    """A number of an app as it is where nobody changed it; 0 where it is off."""
    value = getattr(number, "default", number)
    return 0.0 if value == "off" else float(value)


@pytest.mark.parametrize("identifier", with_app())
def test_a_challenge_that_moves_a_nodes_pods_starts_no_storm_of_its_own(identifier: str) -> None:
    """Whatever else ran on that node: a service whose every request is tried as often as its clients try still answers all.

    Otherwise the seed, which places the pods, would decide whether a right repair passes.
    """
    document = scenario(identifier)
    if not any(entry.kind == "challenge" and "roll_node" in entry.spec for entry in document.checks):
        return
    app, objects, load_ = app_of(document), objects_of(document), document.environment.load
    for name, operation in [(at, op) for service in app.services.values() for at, op in service.operations.items()]:
        rates = [
            load_.journeys.get(id_, journey.rate) * load_.factor
            for id_, journey in app.journeys.items()
            if journey.entry and journey.entry.operation == name
        ]
        for call in operation.calls:
            if tries := by_default(call.retries):
                callee = app.services[call.to]
                namespaced = call.to.replace("/", f"/{app.namespace}/")
                workers = objects[namespaced]["spec"].get("replicas", 1) * callee.capacity.workers
                capacity = 1000.0 * workers / callee.operations[call.operation].service_ms
                assert sum(rates) * (1 + tries) < capacity, (call.to, sum(rates), capacity)
