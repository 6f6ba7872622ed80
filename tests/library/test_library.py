"""Finding, loading and linting the library."""

import pytest

from itbench.core.documents.base import Document, DocumentError
from itbench.core.errors import UsageError
from itbench.library.store import Library, sort_key
from itbench.library.suites import chosen
from itbench.library.vocabulary import Vocabulary

SCENARIO = """\
schema: itbench/scenario/v1
id: sre-900
title: T
domain: sre
family: f
level: easy
source: {what: w}
environment: {}
faults: [{id: gone-wrong, target: deployment/shop/a, args: {tag: x}}]
page: hello
checks: [{held: {for: 2m}}]
repairs: [{name: r, steps: [{say: hello}]}]
truth: {root_causes: [{entity: deployment/shop/a, mechanism: image-unavailable}]}
"""
FAULT = """\
schema: itbench/fault/v1
id: gone-wrong
title: T
does: something
layer: app
args: {tag: {description: the tag, required: true}}
"""


class Held(Document):
    """A check of the test."""

    for_: str = ""

    model_config = Document.model_config | {"alias_generator": lambda name: name.rstrip("_")}


class Say(Document):
    """A step of the test."""

    value: str


VOCABULARY = Vocabulary(checks={"held": Held}, steps={"say": Say})


@pytest.fixture
def pack(tmp_path):
    (tmp_path / "scenarios/sre/900-x").mkdir(parents=True)
    (tmp_path / "playbooks/faults/gone-wrong").mkdir(parents=True)
    (tmp_path / "playbooks/faults/gone-wrong/fault.yaml").write_text(FAULT)
    file = tmp_path / "scenarios/sre/900-x/scenario.yaml"
    file.write_text(SCENARIO)
    return file


def library(file):
    return Library((str(file.parents[3]),), VOCABULARY)


def test_a_users_pack_is_found_beside_the_built_in_library(pack):
    found = library(pack).scenario("sre-900")
    assert found.file == pack and found.scenario.repairs[0].steps[0].kind == "say"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "{say: hello}",
            "{sya: hello}",
            r"scenario\.yaml:12: repairs\.0\.steps\.0: unknown step: 'sya'.*did you mean 'say'",
        ),
        ("{for: 2m}", "{four: 2m}", r"scenario\.yaml:11: four: no such field.*did you mean 'for'"),
        (
            "id: gone-wrong,",
            "id: gone-wrogn,",
            r"scenario\.yaml:9: faults.0.id: no such fault: 'gone-wrogn'.*did you mean 'gone-wrong'",
        ),
        (
            "{tag: x}",
            "{tga: x}",
            r"scenario\.yaml:9: faults.0.args.tga: gone-wrong has no such argument: 'tga'.*did you mean 'tag'",
        ),
        ("args: {tag: x}", "args: {}", r"faults.0.args: gone-wrong lacks an argument: .*expected tag"),
    ],
)
def test_mistakes_are_named_with_the_nearest_valid_value(pack, old, new, message):
    assert old in SCENARIO
    pack.write_text(SCENARIO.replace(old, new))
    with pytest.raises(DocumentError, match=message):
        library(pack).scenario("sre-900")


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"x: &x [*x]"])
def test_a_file_that_is_no_document_is_named(pack, raw):
    pack.write_bytes(raw)
    with pytest.raises(DocumentError, match=r"scenario\.yaml"):
        list(library(pack).scenarios())


def test_an_unknown_id_names_the_nearest(pack):
    with pytest.raises(UsageError, match="did you mean 'sre-900'"):
        library(pack).scenario("sre-9000")


def test_a_folder_without_the_layout_is_no_library(tmp_path):
    with pytest.raises(UsageError, match="not a library"):
        Library((str(tmp_path),))


def test_ids_sort_by_number_and_rows_come_before_their_twins():
    ids = ["sre-12", "sre-2", "ciso-40@twin", "ciso-40", "finops-a03"]
    assert sorted(ids, key=sort_key) == ["ciso-40", "ciso-40@twin", "finops-a03", "sre-2", "sre-12"]


def test_a_selection_needs_a_name_and_must_leave_something(pack):
    where = library(pack)
    with pytest.raises(UsageError, match="no scenario named"):
        chosen(where, ())
    assert chosen(where, ("sre-900", "sre-900")) == ["sre-900"]
    with pytest.raises(UsageError, match="no scenario matches"):
        chosen(where, ("sre-900",), domain="ciso")
    with pytest.raises(UsageError, match="no such suite: 'smokey'; expected one of ciso, finops, smoke, sre"):
        chosen(where, (), suite="smokey")


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: checkout
  namespace: shop
---
apiVersion: v1
kind: ConfigMap
metadata: {name: flags, namespace: shop}
"""


@pytest.fixture
def app(pack):
    """The pack with an app of two objects; gives a function that sets the fault's target."""
    root = pack.parents[3]
    (root / "playbooks/apps/small/manifests").mkdir(parents=True)
    (root / "playbooks/apps/small/manifests/a.yaml").write_text(DEPLOYMENT)
    (root / "playbooks/faults/gone-wrong/fault.yaml").write_text(FAULT + "targets: [deployment]\n")
    text = SCENARIO.replace("environment: {}", "environment: {app: {id: small}}")

    def target(name):
        pack.write_text(text.replace("deployment/shop/a,", f"{name},"))
        return Library((str(root),), VOCABULARY).scenario("sre-900")

    return target


def test_a_target_of_the_apps_manifests_is_right(app):
    assert app("deployment/shop/checkout").scenario.faults[0].target == "deployment/shop/checkout"


@pytest.mark.parametrize("name", ["deployment/shop/chekout", "deployment/shopp/checkout"])
def test_a_misspelt_target_names_the_nearest_right_one(app, name):
    with pytest.raises(
        DocumentError,
        match=f"scenario.yaml:9: faults.0.target: the app has no such object: '{name}'.*mean 'deployment/shop/checkout'",
    ):
        app(name)


@pytest.mark.parametrize("name", ["configmap/shop/flags", "deploymnt/shop/checkout", "checkout"])
def test_a_target_of_another_kind_than_the_fault_takes_is_found(app, name):
    with pytest.raises(DocumentError, match=f"cannot act on its target: '{name}'; expected deployment/NAMESPACE/NAME"):
        app(name)


def test_an_app_that_does_not_exist_is_named_with_the_file(pack):
    pack.write_text(SCENARIO.replace("environment: {}", "environment: {app: {id: astronomy-shp}}"))
    with pytest.raises(DocumentError, match=r"scenario.yaml:8: environment.app.id: no such app.*'astronomy-shop'"):
        Library((str(pack.parents[3]),), VOCABULARY).scenario("sre-900")


def test_a_diagnosis_of_an_incident_needs_a_root_cause_to_compare_with(pack):
    pack.write_text("".join(line for line in SCENARIO.splitlines(True) if not line.startswith("truth")))
    with pytest.raises(DocumentError, match=r"truth\.root_causes: no root cause"):
        Library((str(pack.parents[3]),), VOCABULARY).scenario("sre-900")
