"""Reads the words of an `aws` command line by the service's own model: options, JSON, shorthand. Called by `itbench.tools.aws`.

Shapes are botocore's (`type_name`, `members`, `member`, `key`, `value`).
Source of the syntax: AWS CLI user guide, "Using shorthand syntax in the AWS CLI".
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

ReadFile = Callable[[str], bytes]
"""Content of a file that an option names with `file://` or `fileb://`."""


class BadWords(ValueError):
    """The command line cannot be understood; the text says which option and what was expected."""


def cli_name(name: str) -> str:
    """`InstanceIds` -> `instance-ids`, `DBInstanceIdentifier` -> `db-instance-identifier`."""
    from botocore import xform_name

    return str(xform_name(name, "-"))


def options(words: Sequence[str]) -> dict[str, list[str]]:
    """`--a b c --d=e --f` -> `{a: [b, c], d: [e], f: []}`.

    Raises:
        BadWords: a word before the first option.
    """
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for word in words:
        if re.match(r"--[a-zA-Z]", word):
            name, equals, value = word[2:].partition("=")
            current = found.setdefault(name, [])
            if equals:
                current.append(value)
        elif current is None:
            raise BadWords(f"unexpected word {word!r}; expected an option such as --filters")
        else:
            current.append(word)
    return found


def parameters(shape: Any, given: Mapping[str, list[str]], read: ReadFile) -> dict[str, Any]:
    """The input of an operation from its options.

    Args:
        shape: the operation's input structure, or None when it takes none.
        given: options as from `options`, without global ones.
        read: how to read `file://` values.

    Raises:
        BadWords: an option that the operation does not have, or a value of the wrong form.
    """
    members = {} if shape is None else {cli_name(name): (name, member) for name, member in shape.members.items()}
    result: dict[str, Any] = {}
    for option, values in given.items():
        if option == "cli-input-json":
            result.update(_json("".join(values), option))
        elif option in members:
            name, member = members[option]
            result[name] = value(member, values, option, read)
        elif option.startswith("no-") and option[3:] in members and members[option[3:]][1].type_name == "boolean":
            result[members[option[3:]][0]] = False
        else:
            near = [name for name in members if name.split("-")[0] == option.split("-")[0]] or list(members)
            raise BadWords(
                f"unknown option --{option}; this operation has {', '.join('--' + name for name in near[:12])}"
            )
    return result


def value(shape: Any, values: Sequence[str], option: str, read: ReadFile) -> Any:
    """The value of one option, by the shape of its member."""
    values = [_contents(word, read, option) for word in values]
    kind = shape.type_name
    if kind == "boolean":
        return _boolean(values[0] if values else "true", option)
    if not values:
        raise BadWords(f"--{option} needs a value")
    if kind == "list":
        if values[0].lstrip().startswith("["):
            return _json(" ".join(values), option)
        return [item for word in values for item in _items(shape.member, word, option)]
    if kind in ("structure", "map"):
        if values[0].lstrip().startswith("{"):
            return _json(" ".join(values), option)
        return _Shorthand(",".join(values), option).structure(shape, end="")
    if len(values) > 1:
        raise BadWords(f"--{option} takes one value, not {len(values)}: {' '.join(values)!r}")
    return scalar(shape, values[0], option)


def _items(member: Any, word: str, option: str) -> list[Any]:
    if word.lstrip().startswith(("{", "[")):
        return [_json(word, option)]
    if member.type_name in ("structure", "map"):
        return [_Shorthand(word, option).structure(member, end="")]
    return [scalar(member, word, option)]


def scalar(shape: Any, word: str, option: str) -> Any:
    """One word as a number, truth value, bytes or text."""
    kind = shape.type_name
    try:
        if kind in ("integer", "long"):
            return int(word)
        if kind in ("float", "double"):
            return float(word)
    except ValueError as error:
        raise BadWords(f"--{option}: {word!r} is not a number") from error
    if kind == "boolean":
        return _boolean(word, option)
    return word.encode() if kind == "blob" else word


def _boolean(word: str, option: str) -> bool:
    if word.lower() not in ("true", "false"):
        raise BadWords(f"--{option}: {word!r} is neither true nor false")
    return word.lower() == "true"


def _json(text: str, option: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadWords(f"--{option}: not JSON ({error}): {text[:200]!r}") from error


def _contents(word: str, read: ReadFile, option: str) -> str:
    for prefix in ("file://", "fileb://"):
        if word.startswith(prefix):
            try:
                return read(word.removeprefix(prefix)).decode("utf-8", "replace")
            except (OSError, ValueError) as error:
                raise BadWords(f"--{option}: cannot read {word}: {error}") from error
    return word


class _Shorthand:
    """`Key=a,Values=b,c,Ebs={VolumeSize=10},Tags=[{Key=x,Value=y}]`, read by the shape it fills."""

    def __init__(self, text: str, option: str) -> None:
        self.text, self.option, self.at = text, option, 0

    def structure(self, shape: Any, end: str) -> dict[str, Any]:
        """Pairs up to `end` (or to the end of the text)."""
        result: dict[str, Any] = {}
        while not self._over(end):
            key = self._key()
            inner = self._inner(shape, key)
            result[key] = self._value(inner, end)
            if not self._over(end):
                self._take(",")
        if end:
            self._take(end)
        return result

    def _inner(self, shape: Any, key: str) -> Any:
        if shape.type_name == "map":
            return shape.value
        if shape.type_name != "structure" or key not in shape.members:
            names = ", ".join(getattr(shape, "members", {})) or "no keys"
            raise BadWords(f"--{self.option}: unknown key {key!r} in {self.text!r}; there are {names}")
        return shape.members[key]

    def _value(self, shape: Any, end: str) -> Any:
        opening = self.text[self.at : self.at + 1]
        if shape.type_name in ("structure", "map") and opening == "{":
            self.at += 1
            return self.structure(shape, "}")
        if shape.type_name != "list":
            return scalar(shape, self._word(end), self.option)
        if opening == "[":
            self.at += 1
            return list(self._bracketed(shape.member))
        return list(self._continued(shape.member, end))

    def _bracketed(self, member: Any) -> Iterator[Any]:
        while not self._over("]"):
            yield self._value(member, "]")
            if not self._over("]"):
                self._take(",")
        self._take("]")

    def _continued(self, member: Any, end: str) -> Iterator[Any]:
        """`Values=a,b,Name=c`: words go on until one is a key again."""
        yield self._value(member, end)
        while self.text[self.at : self.at + 1] == "," and not re.match(r",[\w.:/-]+=", self.text[self.at :]):
            self.at += 1
            yield self._value(member, end)

    def _key(self) -> str:
        match = re.match(r"\s*([\w.:/@ -]+?)=", self.text[self.at :])
        if not match:
            raise BadWords(f"--{self.option}: expected KEY=VALUE at {self.text[self.at :]!r}")
        self.at += match.end()
        return match.group(1)

    def _word(self, end: str) -> str:
        rest = self.text[self.at :]
        if rest[:1] in ("'", '"'):
            close = rest.find(rest[0], 1)
            if close < 0:
                raise BadWords(f"--{self.option}: quote not closed in {self.text!r}")
            self.at += close + 1
            return rest[1:close]
        match = re.match(r"[^,]*" if not end else rf"[^,{re.escape(end)}]*", rest)
        word = match.group(0) if match else ""
        self.at += len(word)
        return word

    def _over(self, end: str) -> bool:
        return self.at >= len(self.text) or (bool(end) and self.text[self.at] == end)

    def _take(self, char: str) -> None:
        if self.text[self.at : self.at + 1] != char:
            raise BadWords(f"--{self.option}: expected {char!r} at {self.text[self.at :]!r} in {self.text!r}")
        self.at += 1
