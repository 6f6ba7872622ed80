"""Child process: evaluates one Rego rule of one policy on inputs, by regorus. Memory and processor time are limited here.

Asked by `itbench.engines.rego`. Message: `{policy, rule, input, data}`; answer: `{value}`, or `{undefined: true}`.
What agents write is evaluated only here: no network built-in exists, no file is read.
"""

import resource
from typing import Any

from itbench.engines.child import serve

MEMORY_BYTES = 512 * 1024 * 1024
COLUMNS, FILE_BYTES, LINES = 16_384, 1_048_576, 20_000
REFUSED = ("time.now_ns", "rand.intn", "uuid.rfc4122")
"""Built-ins whose answers differ from run to run; policies get the time as `data.itbench.now_ns`."""


def plain(value: Any) -> Any:
    """Sets as sorted lists, so that equal results are equal data."""
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=repr)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """Evaluate; raises with the engine's own first lines on syntax and run-time errors."""
    import regorus

    used = [name for name in REFUSED if name in message["policy"]]
    if used:
        raise ValueError(f"{used[0]} is not available: results must be the same in every run")
    engine = regorus.Engine()
    engine.set_policy_length_config(max_col=COLUMNS, max_file_bytes=FILE_BYTES, max_lines=LINES)
    try:
        engine.add_policy("policy.rego", message["policy"])
        engine.add_data(message.get("data") or {})
        engine.set_input(message["input"])
        value = engine.eval_rule(message["rule"])
    except Exception as error:
        raise ValueError(str(error).split("Stack backtrace")[0].strip()) from error
    return {"undefined": True} if value is None else {"value": plain(value)}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    serve(answer)
