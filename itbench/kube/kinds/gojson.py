"""What a Go program says of JSON that it cannot read. Called where such texts reach clients."""

import json
import re

_LITERALS = {"n": "null", "t": "true", "f": "false"}


def _shown(letter: str) -> str:
    if letter == "'":
        return "'\\''"
    if letter == '"':
        return "'\"'"
    return f"'{letter}'" if letter.isprintable() else repr(letter)


def go_quoted(text: str) -> str:
    """A text as Go's `%q` prints it: control characters by two hexadecimal digits."""
    return re.sub(r"\\u00([01][0-9a-f]|7f)", r"\\x\1", json.dumps(text, ensure_ascii=False).replace("\x7f", "\\x7f"))


def go_json_error(text: str) -> str:
    """The error of reading a text as JSON; nothing where it is JSON."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _fault(text, error)
    return ""


def _fault(text: str, error: json.JSONDecodeError) -> str:
    at = error.pos
    while at < len(text) and text[at].isspace():
        at += 1
    if at >= len(text) or error.msg.startswith("Unterminated"):
        return "unexpected end of JSON input"
    letter = text[at]
    if letter in _LITERALS and error.msg == "Expecting value":
        return _literal(text[at:])
    return f"invalid character {_shown(letter)} {_place(text[:at], error.msg)}"


def _literal(rest: str) -> str:
    word = _LITERALS[rest[0]]
    for index, wanted in enumerate(word):
        if index >= len(rest):
            return "unexpected end of JSON input"
        if rest[index] != wanted:
            return f"invalid character {_shown(rest[index])} in literal {word} (expecting {_shown(wanted)})"
    return f"invalid character {_shown(rest[len(word)])} after top-level value"


def _place(before: str, message: str) -> str:
    if message.startswith("Expecting property name"):
        return "looking for beginning of object key string"
    if message.startswith("Expecting ':'"):
        return "after object key"
    if message.startswith("Expecting ','"):
        return "after object key:value pair" if _inside_object(before) else "after array element"
    if message.startswith("Extra data"):
        return "after top-level value"
    return "looking for beginning of value"


def _inside_object(before: str) -> bool:
    bare = re.sub(r'"(\\.|[^"\\])*"', "", before)
    open_marks: list[str] = []
    for letter in bare:
        if letter in "{[":
            open_marks.append(letter)
        elif letter in "}]" and open_marks:
            open_marks.pop()
    return bool(open_marks) and open_marks[-1] == "{"
