"""Child process: evaluates one Rego rule of one policy on inputs, by regorus. Memory and processor time are limited here.

Asked by `itbench.engines.rego`. Message: `{policy, rule, input, data}`; answer: `{value}`, or `{undefined: true}`.
What agents write is evaluated only here: no network built-in exists, no file is read.
"""

import json
import resource
from typing import Any

from itbench.engines.child import serve

MEMORY_BYTES = 512 * 1024 * 1024
COLUMNS, FILE_BYTES, LINES = 16_384, 1_048_576, 20_000
REFUSED = ("time.now_ns", "rand.intn", "uuid.rfc4122")
"""Built-ins whose answers differ from run to run; policies get the time as `data.itbench.now_ns`."""


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """Evaluate; raises with the engine's own first lines on syntax and run-time errors.

    Asked as a query with a JSON answer: sets become sorted lists, and the engine's Python values cannot hold sets of objects.
    """
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
        answered = json.loads(engine.eval_query_as_json(message["rule"]))
    except Exception as error:
        raise ValueError(str(error).split("Stack backtrace")[0].strip()) from error
    results = answered.get("result")
    if not results:
        return {"undefined": True}
    return {"value": results[0]["expressions"][0]["value"]}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    serve(answer)
