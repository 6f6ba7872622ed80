"""Child process: CEL as Kubernetes evaluates it, with its functions, composed variables and error texts.

Asked by `itbench.engines.cel_rules`. A message is one environment with many expressions:
`{variables: {name: type}, composed: [[name, expression]], rows: [{expression, data?}], data?, decisions: {question: answer}}`;
without data expressions are only compiled. The answer: `{composed: [...], rows: [...], asks: [...]}`, each row `{type}` with a
`value`, or an `error` (does not compile) or a `fault` (fails at run time). `asks` are questions to the authorizer that the caller
answers in `decisions` when it asks again.
"""

import json
import re
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

from itbench.engines.cel_library import extension
from itbench.engines.child import serve

Data = dict[str, Any]
_TYPES = {
    "dyn": cel.Type.DYN,
    "int": cel.Type.INT,
    "string": cel.Type.STRING,
    "bool": cel.Type.BOOL,
    "double": cel.Type.DOUBLE,
    "map": cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
}
_KEPT = 256
_PLACE = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_UNDECLARED = re.compile(r"undeclared reference to '([^']+)' \(in container ''\)")
_RUN_TIME = (
    (re.compile(r"^NOT_FOUND: Key not found in map : \"?(.*?)\"?$"), r"no such key: \1"),
    (re.compile(r"^UNKNOWN: Index error: index=(-?\d+) size=\d+$"), r"index out of bounds: \1"),
    (re.compile(r"^INVALID_ARGUMENT: divide by zero$"), "division by zero"),
    (re.compile(r"^INVALID_ARGUMENT: modulus by zero$"), "modulus by zero"),
    (re.compile(r"^OUT_OF_RANGE: integer overflow$"), "integer overflow"),
    (re.compile(r"^UNKNOWN: No matching overloads found.*$", re.S), "no such overload"),
    (re.compile(r"^INVALID_ARGUMENT: invalid regular expression: (.*)$"), r"error parsing regexp: \1"),
    (re.compile(r"^.*cannot convert string to int$"), "type conversion error from 'string' to 'int'"),
    (
        re.compile(r"^.*String to (Timestamp|Duration) conversion failed$"),
        r"type conversion error from 'string' to 'google.protobuf.\1'",
    ),
    (re.compile(r"^[A-Z_]+: "), ""),
)
_SELECTED = "Applying SELECT to non-message type"
_INDEXED = "Invalid container type"
_PATHS = re.compile(r"(?<![\w.'\"])([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*(?!\w*\())+)")
_INDEX = re.compile(r"\[\s*('[^']*'|\"[^\"]*\"|-?\d+)\s*\]")


class Unanswered(Exception):
    """The authorizer was asked something that the caller has not decided yet."""


class Environment:
    """Compiled expressions over one set of variables."""

    def __init__(self, variables: dict[str, str], composed: list[list[str]]) -> None:
        self.decisions: dict[str, Data] = {}
        self.asks: list[Data] = []
        self._types: dict[str, Any] = {name: _TYPES[kind] for name, kind in variables.items()}
        self._programs: dict[str, Any] = {}
        self.composed: list[Data] = []
        self.texts: dict[str, str] = {}
        self._make()
        for name, expression in composed:
            program = self.compile(expression)
            self.composed.append(_outcome(program))
            self.texts[name] = expression
            usable = not isinstance(program, str)
            self._types[f"variables.{name}"] = program.return_type() if usable else cel.Type.DYN
            self._make()

    def _make(self) -> None:
        standard = [
            ext_strings.ExtStrings(),
            ext_math.ExtMath(),
            ext_optional.ExtOptional(),
            ext_bindings.ExtBindings(),
            ext_encoders.ExtEncoders(),
        ]
        self._environment = cel.NewEnv(variables=self._types, extensions=[*standard, extension(self._ask)])

    def _ask(self, question: Data) -> Data:
        key = json.dumps(question, sort_keys=True)
        if key not in self.decisions:
            if question not in self.asks:
                self.asks.append(question)
            raise Unanswered("not decided yet")
        return self.decisions[key]

    def compile(self, expression: str) -> Any:
        """The program, or the text of what is wrong."""
        if expression not in self._programs:
            try:
                self._programs[expression] = self._environment.compile(expression)
            except RuntimeError as error:
                return _compile_error(str(error), expression)
        return self._programs[expression]

    def evaluate(self, expression: str, data: Data) -> Data:
        """Type and value, or error, or fault; `data` keeps the values of composed variables for the next expression."""
        program = self.compile(expression)
        if isinstance(program, str):
            return {"error": program}
        for name in _references(expression):
            if name in self.texts and f"variables.{name}" not in data:
                made = self.evaluate(self.texts[name], data)
                if "value" not in made:
                    why = made.get("fault") or made.get("error")
                    return {"fault": f'composited variable "{name}" fails to evaluate: {why}'}
                data[f"variables.{name}"] = made["value"]
        found = _run(program, data)
        if "fault" in found:
            found["fault"] = _absent(found["fault"], expression, data)
        return _outcome(program) | found


def _absent(fault: str, expression: str, data: Data) -> str:
    """cel-go says of fields and indexes of what has none that there is no such key: find out which it was."""
    if _INDEXED in fault:
        index = _INDEX.search(expression)
        return f"no such key: {index.group(1).strip(chr(39) + chr(34))}" if index else fault
    if _SELECTED not in fault:
        return fault
    unknown = ""
    for root, tail in _PATHS.findall(expression):
        steps = tail[1:].split(".")
        if root not in data:
            unknown = unknown or steps[-1]
            continue
        value = data[root]
        for step in steps:
            if not isinstance(value, dict):
                return f"no such key: {step}"
            value = value.get(step)
    return f"no such key: {unknown}" if unknown else "no such key"


def _references(expression: str) -> list[str]:
    return re.findall(r"\bvariables\s*\.\s*\??\s*([A-Za-z_]\w*)", expression)


def _outcome(program: Any) -> Data:
    return {"error": program} if isinstance(program, str) else {"type": type_text(program.return_type().name())}


def type_text(name: str) -> str:
    """A type as cel-go names it: `LIST<DYN>` -> `list(dyn)`."""
    text = re.sub(r"\b[A-Z]+\b", lambda found: found.group(0).lower(), name).replace("<", "(").replace(">", ")")
    return "null_type" if text == "null" else text


def _run(program: Any, data: Data) -> Data:
    try:
        value = program.eval(data=data)
        if value.type() == cel.Type.ERROR:
            return {"fault": _run_time(str(value.plain_value()))}
        return {"value": _plain(value.plain_value())}
    except Exception as error:  # values that the binding cannot hand over
        return {"fault": _run_time(str(error).splitlines()[0])}


def _plain(value: Any) -> Any:
    """A value as JSON holds it."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _run_time(text: str) -> str:
    for pattern, shown in _RUN_TIME:
        if pattern.search(text):
            return pattern.sub(shown, text)
    return text


def _compile_error(text: str, expression: str) -> str:
    """The compiler's report as cel-go prints it."""
    rows = _PLACE.findall(text.removesuffix(" [INVALID_ARGUMENT]"))
    if not rows:
        return text
    lines = expression.split("\n")
    seen: list[str] = []
    for line, column, why in rows:
        source = lines[int(line) - 1] if int(line) <= len(lines) else ""
        why, place = _blame(why, int(column), source)
        seen.append(f"ERROR: <input>:{line}:{place}: {why}\n | {source}\n | {'.' * (place - 1)}^")
    return "\n".join(dict.fromkeys(seen))


def _blame(why: str, column: int, source: str) -> tuple[str, int]:
    """cel-go blames the first part of a dotted name, and the field of a known message."""
    found = _UNDECLARED.match(why)
    if found is None or "." not in found.group(1):
        return why, column
    name = found.group(1)
    root, _, rest = name.partition(".")
    if root == "variables":
        return f"undefined field '{rest.split('.')[0]}'", source.find("variables") + len("variables") + 1
    start = column - len(name.rpartition(".")[0])
    return f"undeclared reference to '{root}' (in container '')", max(start, 1)


_ENVIRONMENTS: dict[str, Environment] = {}


def _environment(message: Data) -> Environment:
    key = json.dumps([message.get("variables"), message.get("composed")], sort_keys=True)
    if key not in _ENVIRONMENTS:
        if len(_ENVIRONMENTS) >= _KEPT:
            _ENVIRONMENTS.clear()
        _ENVIRONMENTS[key] = Environment(message.get("variables") or {}, message.get("composed") or [])
    return _ENVIRONMENTS[key]


def answer(message: Data) -> Data:
    """Compile, and evaluate where there is data."""
    environment = _environment(message)
    environment.decisions, environment.asks = message.get("decisions") or {}, []
    common, rows = message.get("data"), []
    for row in message["rows"]:
        own: Data | None = row.get("data", common)
        if own is None:
            rows.append(_outcome(environment.compile(row["expression"])))
        else:
            rows.append(environment.evaluate(row["expression"], own))
    return {"composed": environment.composed, "rows": rows, "asks": environment.asks}


if __name__ == "__main__":
    serve(answer)
