"""The records of this folder against a real API server: it still answers so (skipped where ITBENCH_REAL is unset)."""

import json
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = [pytest.mark.real, pytest.mark.slow]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Real:
    """Requests to the real server."""

    def __init__(self, folder: Path) -> None:
        config = yaml.safe_load((folder / "kubeconfig").read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = cluster["server"]
        self.tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self.tls.load_cert_chain(user["client-certificate"], user["client-key"])

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, Any]:
        """Code and JSON answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, method=method, data=data, headers={"Content-Type": kind})
        try:
            with urllib.request.urlopen(request, context=self.tls) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raw = error.read()
                return error.code, json.loads(raw) if raw.startswith(b"{") else {}

    def define(self, definition: dict) -> str:
        """Create a definition and wait until its kind is served; returns the path of its objects."""
        assert self.ask("POST", DEFINITIONS, definition)[0] == 201
        spec = definition["spec"]
        path = f"/apis/{spec['group']}/v1/namespaces/default/{spec['names']['plural']}"
        for _ in range(200):
            if self.ask("GET", path)[0] == 200:
                return path
            time.sleep(0.05)
        raise AssertionError(f"{path} is not served")


@pytest.fixture(scope="module")
def real(bare_plane: Path) -> Real:
    """Requests to a server of this module's own."""
    return Real(bare_plane)


def _parts(message: str) -> list[str]:
    """The faults of a message in a fixed order: the real server walks maps."""
    head, _, tail = message.partition(" is invalid: ")
    return [head, *sorted(tail.removeprefix("[").removesuffix("]").split(", "))]


def _check(found: tuple[int, Any], wanted: dict, what: Any) -> None:
    code, body = found
    assert code == wanted["code"], what
    if "message" in wanted:
        assert _parts(body["message"]) == _parts(wanted["message"]), what
    if "spec" in wanted:
        assert body["spec"] == wanted["spec"], what


def test_definitions(real: Real, recorded: Any) -> None:
    """Answers to definitions are still those on record."""
    for row in recorded("definitions"):
        _check(real.ask("POST", f"{DEFINITIONS}?dryRun=All", row["body"]), row["answer"], row["label"])


def test_objects(real: Real, recorded: Any) -> None:
    """Answers to objects and configurations are still those on record."""
    record = recorded("objects")
    path = real.define(record["definition"])
    for row in record["creates"]:
        query = f"?dryRun=All&fieldValidation={row.get('validation', 'Warn')}"
        _check(real.ask("POST", path + query, row["body"]), row["answer"], row["body"])
    for row in record["applies"]:
        query = "/ap?dryRun=All&fieldManager=m"
        _check(real.ask("PATCH", path + query, row["body"], "application/apply-patch+yaml"), row["answer"], row["body"])


def test_rules(real: Real, recorded: Any) -> None:
    """Verdicts of rules are still those on record."""
    record = recorded("rules")
    path = real.define(record["definition"])
    for row in record["creates"]:
        _check(real.ask("POST", path + "?dryRun=All", row["body"]), row["answer"], row["body"])
    assert real.ask("POST", path, record["base"])[0] == 201
    for row in record["patches"]:
        found = real.ask("PATCH", path + "/c?dryRun=All", row["body"], "application/merge-patch+json")
        _check(found, row["answer"], row["body"])
