"""Which failures of a play are the playbook's own, told by Ansible itself in one play that survives them all."""

from pathlib import Path

import pytest

from itbench.stage import ansible
from itbench.stage.ansible import Play, run_play
from itbench.stage.events import Events

REFUSED = (
    'Failed to create object: b\'{"message":"Deployment.apps shop is invalid: spec.template.metadata.labels: Invalid value: '
    "`selector` does not match template `labels`; no_such is undefined\"}'"
)
WRONG = {
    "a name that nothing has": "debug: {msg: '{{ nobody }}'}",
    "a member that is not there": "debug: {msg: '{{ greeting.tone }}'}",
    "an expression that does not end": "debug: {msg: '{{ greeting'}",
    "a filter that is not there": "debug: {msg: '{{ greeting | nofilter }}'}",
    "a lookup that is not there": "debug: {msg: \"{{ lookup('nolookup', 'a') }}\"}",
    "a condition that is no expression": "debug: {msg: a}, when: a b c",
    "a condition on what nothing has": "debug: {msg: a}, when: nobody == 3",
    "a loop over what nothing has": "debug: {msg: a}, loop: '{{ nobody }}'",
    "a misspelt argument": "debug: {mgs: hi}",
    "a misspelt argument of a module": "kubernetes.core.k8s: {nme: a}",
    "an argument that is missing": "kubernetes.core.k8s_exec: {namespace: a}",
    "a value that is none of those": "file: {path: x, state: weird}",
    "a number that is none": "wait_for: {port: abc}",
    "a file that is not there": "include_tasks: nofile.yml",
    "a template that is not there": "template: {src: nofile.j2, dest: x}",
    "a role that is not there": "include_role: {name: nosuch}",
}
WORLD = {
    "Apply the template": "fail: {msg: 'the connection was refused'}",
    "a refusal that names spec.template": "fail: {msg: '{{ refused }}'}",
    "a refusal within a loop": "fail: {msg: '{{ refused }}'}, loop: [1, 2]",
    "a program that speaks of templates": "command: {cmd: sh -c 'echo templating is undefined >&2; exit 3'}",
    "a plugin that meets what it cannot read": "debug: {msg: '{{ greeting | from_json }}'}",
    "a claim that does not hold": "assert: {that: [greeting == 'x'], fail_msg: the template is undefined}",
    "a folder that is not there": "copy: {content: a, dest: /no-such-folder/x}",
}


def _task(name: str, text: str) -> str:
    return f"    - block: [{{name: '{name}', {text}}}]\n      rescue: [{{meta: noop}}]\n"


async def test_failures_of_the_playbook_are_told_from_those_of_the_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every kind of mistake is a defect of the scenario; nothing that the world answers is one, whatever words it uses."""
    seen: list[Events] = []

    class Kept(Events):
        def __init__(self) -> None:
            super().__init__()
            seen.append(self)

    monkeypatch.setattr(ansible, "Events", Kept)
    playbook = tmp_path / "play.yml"
    head = "- hosts: localhost\n  connection: local\n  gather_facts: false\n  tasks:\n"
    playbook.write_text(head + "".join(_task(name, text) for name, text in (WRONG | WORLD).items()))
    variables = {"greeting": "good morning", "refused": REFUSED}
    await run_play(Play(playbook, tmp_path / "private", tmp_path / "kubeconfig", variables))

    (events,) = seen
    assert len(events.failures) == len(WRONG | WORLD), events.failures
    causes = {
        name: (Events([kept]).cause(), kept[1]) for name, kept in zip(WRONG | WORLD, events.failures, strict=True)
    }
    assert {name: causes[name] for name in WRONG if causes[name][0] != "scenario_defect"} == {}
    assert {name: causes[name] for name in WORLD if causes[name][0] != "stage_failed"} == {}
    assert REFUSED in causes["a refusal within a loop"][1]


@pytest.mark.parametrize(
    ("events", "cause", "words"),
    [
        (Events(killed=True), "stage_failed", "was killed; the last it said: nothing"),
        (Events(lines=["[ERROR]: half a word"], killed=True), "stage_failed", "was killed"),
        (Events(lines=["[ERROR]: YAML parsing failed"]), "scenario_defect", "YAML parsing failed"),
        (Events(lines=["[ERROR]: [Errno 28] No space left on device"]), "stage_failed", "No space left"),
        (Events(), "stage_failed", "printed nothing"),
        (Events(lines=["a", "b", "c", "d"]), "stage_failed", "b c d"),
    ],
)
def test_without_a_failed_task_only_what_ansible_says_of_the_playbook_is_a_defect(
    events: Events, cause: str, words: str
) -> None:
    """A play that was killed, or whose files could not be written, may go well the next time."""
    assert events.cause() == cause
    assert words in events.reason()
