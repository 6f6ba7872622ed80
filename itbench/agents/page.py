"""`TASK.md`: the task as a person or a model reads it. Written into an agent's workspace, named by `itbench up`."""

import json

from itbench.core.documents.mechanisms import MEANINGS
from itbench.core.documents.task import Task

_PLACES = (
    ("kubeconfig", "Kubernetes", "`$KUBECONFIG` (kubectl is on PATH)"),
    ("prometheus_url", "Prometheus", "`$PROMETHEUS_URL`"),
    ("alertmanager_url", "Alertmanager", "`$ALERTMANAGER_URL`"),
    ("loki_url", "Loki", "`$LOKI_URL`"),
    ("jaeger_url", "Jaeger", "`$JAEGER_URL`"),
    ("aws_endpoint_url", "AWS", "`$AWS_ENDPOINT_URL`, with keys and region in the environment"),
    (
        "tools_url",
        "Tools over HTTP",
        "`$ITBENCH_TOOLS_URL`, bearer token `$ITBENCH_TOOLS_TOKEN`; or `itbench tool NAME JSON`",
    ),
    ("mcp_url", "Tools over MCP", "`$ITBENCH_MCP_URL` (streamable HTTP, the same token)"),
)
_ANSWERS = {
    "diagnosis": "what is at the root (`diagnosis`: entities and mechanisms, in the words below)",
    "mitigation": "the estate working again; nothing has to be written down for it",
    "verdict": "the judgement on the whole case (`verdict`)",
    "answer": "the data that the page asks for (`answer`, in the form of answer_schema)",
}


def task_page(task: Task) -> str:
    """The task as Markdown."""
    lines = ["# Task", "", task.page.strip(), ""]
    if task.today:
        lines += [f"Today is {task.today}.", ""]
    lines += ["## What is expected", ""]
    lines += [f"- {_ANSWERS.get(answer, answer)}" for answer in task.answers]
    lines += [f"- {item.kind}: {item.path or 'in the ' + item.via} {item.about}".rstrip() for item in task.deliver]
    minutes = task.limits.time_s / 60
    lines += [
        "",
        f"You have {minutes:g} minutes of the estate's time and {task.limits.steps} steps.",
        "",
        "## What you have",
        "",
    ]
    lines += [f"- {name}: {where}" for key, name, where in _PLACES if getattr(task.endpoints, key)]
    if task.endpoints.databases:
        lines += [f"- SQL (tool `sql`): {', '.join(sorted(task.endpoints.databases))}"]
    lines += ["", "Tools: " + ", ".join(f"`{tool.name}`" for tool in task.tools), ""]
    lines += ["## How to answer", ""]
    lines += [
        "Write the answer as JSON and hand it in, once, when you are done:",
        "",
        "    itbench submit answer.json",
        "",
    ]
    lines += ["or leave it as `submission.json` in this folder. Its form:", "", "```json"]
    lines += [json.dumps(task.answer_schema, indent=2), "```", ""]
    if "diagnosis" in task.answers:
        lines += _words(task)
    return "\n".join(lines)


def _words(task: Task) -> list[str]:
    """The closed vocabulary of a diagnosis, the same in every task."""
    lines = ["## The words of a diagnosis", "", "An entity is one of:", ""]
    lines += [f"- {form}" for form in task.vocabulary.entities]
    lines += ["", "A pod or replica set stands for what controls it. A mechanism is one of:", ""]
    lines += [f"- `{word}`: {MEANINGS.get(word, '')}" for word in task.vocabulary.mechanisms]
    lines += ["", "Name every root cause and nothing else: a wrong entry costs, guessing around never helps.", ""]
    return lines
