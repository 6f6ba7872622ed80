"""What Ansible takes for its Python: hands the work to the warm interpreter of the play, or runs a plain one.

Started for every task as `python -IS ask.py ARGUMENTS`, so it imports as little as it can. See `warm.py`.
"""

import json
import os
import socket
import sys


def ask(path: str, argv: list[str]) -> int | None:
    """The exit code of the program, or None when nobody answers."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
        except OSError:
            return None
        request = json.dumps({"argv": argv, "cwd": os.getcwd(), "env": dict(os.environ)}).encode()  # noqa: PTH109 - light
        key = os.environ.get("ITBENCH_WARM_KEY", "").encode()
        socket.send_fds(connection, [key + len(request).to_bytes(8, "big")], [0, 1, 2])
        connection.sendall(request)
        answer = connection.recv(1)
        return answer[0] if answer else 1


def main() -> None:
    """Ask, or become a plain interpreter."""
    path = os.environ.get("ITBENCH_WARM", "")
    code = ask(path, sys.argv[1:]) if path else None
    if code is None:
        os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
    sys.exit(code)


if __name__ == "__main__":
    main()
