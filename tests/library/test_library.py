"""Finding, loading and linting the library."""

import json

import pytest

from itbench.core.documents.base import Document, DocumentError
from itbench.core.errors import UsageError
from itbench.library.store import Library, sort_key
from itbench.library.suites import chosen
from itbench.library.vocabulary import Vocabulary
from itbench.run.known import vocabulary

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


APP = """\
schema: itbench/app/v1
id: shop
namespace: shop
journeys:
  browse: {entry: {service: a, port: 80, workload: deployment/a, operation: GET}, rate: 30}
  booked: {follows: browse, verify: []}
"""


@pytest.fixture
def shop(pack):
    """The pack with an app of two journeys, one of which has traffic of its own."""
    folder = pack.parents[3] / "playbooks/apps/shop"
    folder.mkdir(parents=True)
    (folder / "app.yaml").write_text(APP)
    return pack


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ("{app: {id: shop}, load: {journeys: {brwse: 3}}}", r"scenario\.yaml:8: environment\.load\.journeys\.brwse: "
         r".*'brwse'; expected one of browse; did you mean 'browse'\?"),
        ("{app: {id: shop}, load: {journeys: {booked: 3}}}", r"scenario\.yaml:8: .*expected one of browse$"),
        ("{load: {journeys: {browse: 3}}}", r"scenario\.yaml:8: environment\.load\.journeys: load without an app"),
    ],
)  # fmt: skip
def test_load_of_a_journey_that_the_app_does_not_have_is_named_with_the_nearest(shop, environment, message):
    shop.write_text(
        SCENARIO.replace("environment: {}", "environment: {app: {id: shop}, load: {journeys: {browse: 3}}}")
    )
    library(shop).scenario("sre-900")
    shop.write_text(SCENARIO.replace("environment: {}", f"environment: {environment}"))
    with pytest.raises(DocumentError, match=message):
        library(shop).scenario("sre-900")


@pytest.mark.parametrize(
    ("environment", "page", "nearest"),
    [
        ("{app: {id: shop}}", "{at.symtom}", "at.symptom"),
        ("{app: {id: shop}}", "{at.now} {target.nme}", "target.name"),
        ("{app: {id: shop}}", "{at.noise.1}", ""),
        ("{}", "{at.symptom}", ""),
        ("{}", "{answer.violation}", "answer.violations"),
        ("{aws: {estate: x}}", "{at.noww}", "at.now"),
    ],
)
def test_a_page_with_a_value_that_nothing_fills_in_is_refused_when_it_is_read(shop, environment, page, nearest):
    text = SCENARIO.replace("environment: {}", f"environment: {environment}")
    shop.write_text(text.replace("page: hello", f"page: 'since {page}'"))
    wanted = rf"scenario\.yaml:10: page: page uses an unknown value: .*{nearest and f'did you mean .{nearest}.'}"
    with pytest.raises(DocumentError, match=wanted):
        library(shop).scenario("sre-900")


@pytest.mark.parametrize(
    ("environment", "page"),
    [
        ("{app: {id: shop}}", "{at.symptom} {at.fault} {at.now} {target.name} {target.kind} {target.namespace} {x} {}"),
        ("{}", "{at.now}"),
        ("{aws: {estate: x}}", "{at.now} {target.anything-1.volume}"),
    ],
)
def test_a_page_may_use_what_its_kind_of_estate_tells(shop, environment, page):
    text = SCENARIO.replace("environment: {}", f"environment: {environment}")
    shop.write_text(text.replace("page: hello", f"page: 'since {page}'"))
    assert library(shop).scenario("sre-900").scenario.page == f"since {page}"


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("replicas >=", "1:12: Syntax error"),
        ("replicas >= 1", "undeclared reference to 'replicas'"),
        ('deploymnt("shop", "a").spec.replicas >= 1', "undeclared reference to 'deploymnt'"),
        ('secret("shop", "a") != null', "undeclared reference to 'secret'"),
        ("pods().size() >= 0", ""),
        ("pods().size()", "gives INT, not true or false"),
        ("1 + 1", "gives INT, not true or false"),
        ("(" * 50_000, "recursion limit"),
        ("true && " * 50_000 + "true", "size exceeds"),
    ],
)
@pytest.mark.parametrize("form", ["state: {}", "state: {{value: {}, why: w}}"])
def test_a_state_check_that_can_never_be_true_is_refused_when_it_is_read(pack, expression, why, form):
    text = SCENARIO.replace("checks: [{held: {for: 2m}}]", "checks:\n  - " + form.format(json.dumps(expression)))
    pack.write_text(text.replace("{say: hello}", "{wait: 2m}"))
    where = Library((str(pack.parents[3]),), vocabulary())
    if why:
        with pytest.raises(DocumentError, match=rf"scenario\.yaml:12: value: no CEL over the objects .*{why}"):
            where.scenario("sre-900")
    else:
        assert where.scenario("sre-900").scenario.checks[0].kind == "state"
