"""The `aws` tool: command lines as the AWS CLI takes them, carried out through botocore's own service models.

It always talks to the trial's endpoint with the trial's keys; nothing is read from the host's AWS configuration.
The high-level `s3` commands and the CLI's client-side waiters are left out; `s3api` and every operation of the models are there.
"""

import asyncio
import datetime
import functools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from itbench.tools import process
from itbench.tools.aws_words import BadWords, cli_name, options, parameters
from itbench.tools.context import ToolContext
from itbench.tools.files import read_bytes
from itbench.tools.registry import LIMIT, Tool, ToolResult

_SERVICES = {"s3api": "s3", "configservice": "config", "deploy": "codedeploy"}
_OURS = ("endpoint-url", "profile", "no-sign-request", "ca-bundle", "no-verify-ssl")
_IGNORED = ("output", "no-cli-pager", "cli-read-timeout", "cli-connect-timeout", "color", "debug", "page-size")
_RULE_OPTIONS = ("protocol", "port", "cidr", "source-group")
_RULE_OPERATIONS = tuple(
    f"{act}-security-group-{way}" for act in ("authorize", "revoke") for way in ("ingress", "egress")
)


@functools.cache
def _session() -> Any:
    """A botocore session that knows nothing of the host's files and environment."""
    import botocore.session

    nowhere = {
        "profile": (None, None, None, None),
        "config_file": (None, None, os.devnull, None),
        "credentials_file": (None, None, os.devnull, None),
    }
    return botocore.session.Session(session_vars=nowhere)


@functools.lru_cache(maxsize=64)
def _client(service: str, region: str, endpoint: str, keys: tuple[str, str, str | None]) -> Any:
    """One client for each service, region, account; making one takes longer than most calls."""
    from botocore.config import Config

    return _session().create_client(
        service,
        region_name=region,
        endpoint_url=endpoint,
        aws_access_key_id=keys[0],
        aws_secret_access_key=keys[1],
        aws_session_token=keys[2],
        config=Config(retries={"total_max_attempts": 1}, proxies={}, s3={"addressing_style": "path"}, read_timeout=50),
    )


def _client_of(service: str, region: str, context: ToolContext) -> Any:
    keys = context.endpoints.aws_env
    identity = (keys.get("AWS_ACCESS_KEY_ID", ""), keys.get("AWS_SECRET_ACCESS_KEY", ""), keys.get("AWS_SESSION_TOKEN"))
    return _client(service, region, context.endpoints.aws_endpoint_url, identity)


def _operation(service: str, command: str) -> tuple[str, Any]:
    """Service name and operation model.

    Raises:
        BadWords: no such service or operation; the text names the nearest.
    """
    from difflib import get_close_matches

    name = _SERVICES.get(service, service)
    if service == "s3" or name not in _session().get_available_services():
        near = ["s3api"] if service == "s3" else get_close_matches(service, _session().get_available_services(), n=3)
        raise BadWords(f"no service {service!r}; did you mean {', '.join(near) or 'ec2'}?")
    model = _session().get_service_model(name)
    known = {cli_name(operation): operation for operation in model.operation_names}
    if command not in known:
        near = get_close_matches(command, known, n=3)
        raise BadWords(f"{service} has no operation {command!r}; did you mean {', '.join(near) or 'another service'}?")
    return name, model.operation_model(known[command])


def _rule(given: dict[str, list[str]]) -> None:
    """`--protocol tcp --port 22 --cidr C` of security-group commands -> one `--ip-permissions`."""
    protocol, port, cidr, group = ("".join(given.pop(name, [])) for name in _RULE_OPTIONS)
    if not (protocol or port or cidr or group):
        return
    rule: dict[str, Any] = {"IpProtocol": {"all": "-1"}.get(protocol, protocol or "tcp")}
    if port and rule["IpProtocol"] != "-1":
        first, _, last = port.partition("-")
        try:
            rule |= {"FromPort": int(first), "ToPort": int(last or first)}
        except ValueError as error:
            raise BadWords(f"--port: {port!r} is neither a port nor a range such as 8000-8100") from error
    if cidr:
        rule |= {"Ipv6Ranges": [{"CidrIpv6": cidr}]} if ":" in cidr else {"IpRanges": [{"CidrIp": cidr}]}
    if group:
        rule["UserIdGroupPairs"] = [{"GroupId": group}]
    given["ip-permissions"] = [json.dumps([rule])]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    if hasattr(value, "read"):
        return value.read().decode("utf-8", "replace")
    return str(value)


def _answer(client: Any, operation: Any, params: dict[str, Any], *, paginate: bool) -> dict[str, Any]:
    from botocore import xform_name

    method = xform_name(operation.name)
    if paginate and client.can_paginate(method):
        answer = client.get_paginator(method).paginate(**params).build_full_result()
    else:
        answer = getattr(client, method)(**params)
    return {key: value for key, value in answer.items() if key != "ResponseMetadata"}


def execute(argv: Sequence[str], context: ToolContext) -> ToolResult:
    """Carry out one command line; blocks, so it is run in a thread.

    Args:
        argv: words after `aws`, such as `["ec2", "describe-volumes", "--filters", "Name=status,Values=available"]`.
        context: the trial.
    """
    import jmespath  # type: ignore[import-untyped]
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        words = list(argv)
        service, command, given = _taken(words)
        name, operation = _operation(service, command)
        if command in _RULE_OPERATIONS:
            _rule(given)
        region = "".join(given.pop("region", [])) or context.endpoints.aws_env.get("AWS_REGION", "us-east-1")
        query = " ".join(given.pop("query", []))
        paginate = given.pop("no-paginate", None) is None
        limit = int("".join(given.pop("max-items", ["0"])) or 0)
        workspace = Path(context.endpoints.workspace or os.devnull)
        params = parameters(operation.input_shape, given, lambda path: read_bytes(workspace, path))
        if limit:
            params["PaginationConfig"] = {"MaxItems": limit}
        answer = json.loads(
            json.dumps(_answer(_client_of(name, region, context), operation, params, paginate=paginate), default=_plain)
        )
        answer = jmespath.search(query, answer) if query else answer
    except (BadWords, ValueError, jmespath.exceptions.JMESPathError) as error:
        return ToolResult(f"aws: {error}", ok=False)
    except (ClientError, BotoCoreError) as error:
        return ToolResult(str(error), ok=False)
    return ToolResult("" if answer == {} else json.dumps(answer, indent=2), structured=answer)


def _taken(words: list[str]) -> tuple[str, str, dict[str, list[str]]]:
    """Service, operation and options; options that belong to the trial are refused, those of the terminal dropped."""
    front: list[str] = []
    while words and words[0].startswith("--"):
        front += [words.pop(0)]
        if words and "=" not in front[-1] and front[-1][2:] in ("region", "output", "query", "profile", "endpoint-url"):
            front += [words.pop(0)]
    if len(words) < 2:
        raise BadWords("expected SERVICE OPERATION [--option value ...], such as ec2 describe-volumes")
    given = options([*front, *words[2:]])
    ours = [name for name in given if name in _OURS]
    if ours:
        raise BadWords(f"--{ours[0]} is set by the trial")
    if given.get("output", ["json"]) not in (["json"], []):
        raise BadWords(f"--output {' '.join(given['output'])}: only json here")
    return words[0], words[1], {name: value for name, value in given.items() if name not in _IGNORED}


async def run(command: str | Sequence[str], context: ToolContext) -> ToolResult:
    """Carry out a command line or its words."""
    if not context.endpoints.aws_endpoint_url:
        return ToolResult("aws: this task has no AWS account", ok=False)
    try:
        argv = process.split(command) if isinstance(command, str) else list(command)
    except process.NotPlain as error:
        return ToolResult(f"aws: {error}", ok=False)
    return await asyncio.to_thread(execute, argv[1:] if argv[:1] == ["aws"] else argv, context)


async def _aws(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    return await run(arguments["command"], context)


AWS = Tool(
    name="aws",
    description="Run one AWS CLI command, such as `ec2 describe-volumes --filters Name=status,Values=available`; output is JSON. "
    "--query takes JMESPath; file://PATH reads from your workspace.",
    input_schema={
        "type": "object",
        "required": ["command"],
        "additionalProperties": False,
        "properties": {
            "command": {
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    {"type": "array", "items": {"type": "string"}, "minItems": 1},
                ],
                "description": "one command line without the word aws, or its words; no pipes",
            },
            "limit": LIMIT,
        },
    },
    call=_aws,
    destructive=True,
    deadline_s=120.0,
)
