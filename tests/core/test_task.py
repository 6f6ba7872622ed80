"""The contract with agents: what a submission may say, and how a wrong one is told."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from itbench.core.documents.task import (
    MAX_SUBMISSION_BYTES,
    Endpoints,
    Submission,
    SubmissionInvalid,
    parse_submission,
    submission_schema,
)
from itbench.core.documents.vocabulary import (
    CLUSTER_KINDS,
    MECHANISMS,
    NAMESPACED_KINDS,
    OUTSIDE_KINDS,
    VERDICTS,
    canonical_entity,
    canonical_kind,
)

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)


def test_the_vocabulary_is_closed_and_has_no_doubles():
    """Sixty-five mechanisms, `none` among them; no word twice; the kinds of the three groups do not overlap."""
    assert len(MECHANISMS) == len(set(MECHANISMS)) == 65
    assert "none" in MECHANISMS
    assert len(VERDICTS) == len(set(VERDICTS))
    kinds = [*NAMESPACED_KINDS, *CLUSTER_KINDS, *OUTSIDE_KINDS]
    assert len(kinds) == len(set(kinds))


@pytest.mark.parametrize(
    ("spelled", "kind"),
    [
        ("Deployments.apps", "deployment"),
        ("deploy", "deployment"),
        ("svc", "service"),
        ("NetworkPolicies", "networkpolicy"),
        ("ingress", "ingress"),
        ("ingresses", "ingress"),
        ("storageclasses", "storageclass"),
        ("pvc", "persistentvolumeclaim"),
        ("Widget", "widget"),
    ],
)
def test_kinds_have_one_spelling(spelled, kind):
    """Whatever kubectl takes for a kind means the same kind."""
    assert canonical_kind(spelled) == kind


@given(st.sampled_from(NAMESPACED_KINDS), NAMES, NAMES)
def test_canonical_entities_are_fixed_points(kind, namespace, name):
    """Spelling an entity canonically twice changes nothing, and capitals and plurals of the kind do not matter."""
    entity = canonical_entity(f"{kind.upper()}/{namespace}/{name}")
    assert entity == f"{kind}/{namespace}/{name}" == canonical_entity(entity)


@pytest.mark.parametrize(
    "text", ["deployment/checkout", "node/a/b", "deployment//x", "/a/b", "checkout", "deployment/a/b/c"]
)
def test_entities_of_the_wrong_form_are_refused(text):
    """Too few or too many parts, or empty ones, are errors and not guesses."""
    with pytest.raises(ValueError, match="form"):
        canonical_entity(text)


def test_outside_entities_keep_what_follows_the_first_slash():
    """Names of topics, hosts or tables may contain slashes."""
    assert canonical_entity("fqdn/api.example.com/v1") == "fqdn/api.example.com/v1"


def test_a_submission_survives_json():
    """What was parsed, written as JSON and parsed again is equal, and the published schema accepts it."""
    given_ = {
        "diagnosis": [{"entity": "deploy/shop/frontend", "mechanism": "Retry Amplification"}],
        "chain": [["deployment/shop/frontend", "journey/buy"]],
        "verdict": "incident",
        "answer": {"team": "payments"},
    }
    submission = parse_submission(given_)
    assert submission.diagnosis[0].entity == "deployment/shop/frontend"
    assert submission.diagnosis[0].mechanism == "retry-amplification"
    text = submission.model_dump_json(by_alias=True)
    assert parse_submission(text) == submission
    schema = submission_schema(("diagnosis", "verdict"))
    Draft202012Validator.check_schema(schema)
    assert list(Draft202012Validator(schema).iter_errors(json.loads(text))) == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("{", "not JSON"),
        (b"nonsense\n", ": 'nonsense\\n'; expected a JSON object"),
        ("[1]", "not an object"),
        ('{"diagnosis": 3}', "diagnosis"),
        (
            '{"diagnosis": [{"entity": "deployment/a/b", "mechanism": "retry-amplificaton"}]}',
            "did you mean 'retry-amplification'",
        ),
        ('{"verdict": "recoverd"}', "did you mean 'recovered'"),
        ('{"verdit": "recovered"}', "verdit"),
        ("[" * 5000, "not JSON"),
        ('{"answer": {"a": ' + "[" * 900 + "]" * 900 + "}}", "nested more than 64 deep"),
        ('{"answer": {"a": ' + '{"a": ' * 64 + "1" + "}" * 64 + "}}", "nested more than 64 deep"),
        (" " * (MAX_SUBMISSION_BYTES + 1), "too long"),
    ],
)
def test_wrong_submissions_get_one_clear_line(data, words):
    """The error names what is wrong, in one short line."""
    with pytest.raises(SubmissionInvalid) as caught:
        parse_submission(data)
    text = str(caught.value)
    assert words in text
    assert "\n" not in text
    assert len(text) < 700


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_nonsense_never_crashes_the_parser(data):
    """Any JSON value either is a submission or a `SubmissionInvalid`."""
    try:
        assert isinstance(parse_submission(json.dumps(data)), Submission)
    except SubmissionInvalid as error:
        assert str(error)


def test_required_keys_follow_the_answers():
    """The schema asks for what the task asks for, and for the domain's answer only where there is one."""
    assert submission_schema(("mitigation",))["required"] == []
    assert submission_schema(("diagnosis", "verdict"))["required"] == ["diagnosis", "verdict"]
    assert submission_schema(("answer",), {"type": "object"})["required"] == ["answer"]


def test_the_environment_of_endpoints_names_only_what_is_there():
    """Children see variables for the doors of this estate and none for others."""
    endpoints = Endpoints(kubeconfig="/k", aws_endpoint_url="http://127.0.0.1:1", aws_env={"AWS_REGION": "eu-west-1"})
    assert endpoints.environment() == {
        "KUBECONFIG": "/k",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_REGION": "eu-west-1",
    }
