"""The AWS account itself: moto in a process of its own, with its own clock. Started by `itbench.cloud.process`.

Speaks on standard input and output: a length of four bytes, then msgpack. There is no other way in, so the administration of the
account (seed of its identifiers, its time) is out of reach of those who talk to the front. It answers one request at a time.
"""

import gc
import os
import struct
import sys
import traceback
from typing import Any, BinaryIO

import msgpack

from itbench.core.processes import die_with_parent

ACCOUNT = "417204598812"
"""The account number of the estate."""
NEW_OBJECTS = 50_000
"""After so many the process looks for garbage: at Python's 700 that is a third of the time in which moto gets ready."""


def receive(stream: BinaryIO) -> Any:
    """The next message, or None at the end."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    return msgpack.unpackb(stream.read(struct.unpack(">I", head)[0]))


def send(stream: BinaryIO, message: Any) -> None:
    """One message."""
    data = msgpack.packb(message)
    stream.write(struct.pack(">I", len(data)) + data)
    stream.flush()


class Account:
    """moto behind a WSGI call, at the time that each request says."""

    def __init__(self, seed: int) -> None:
        import time_machine
        from moto.moto_api._internal import mock_random
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        self._application = DomainDispatcherApplication(create_backend_app)
        self._clock = time_machine.travel(0.0, tick=False)
        self._moved = self._clock.start()
        mock_random.seed(seed)

    def http(self, request: dict[str, Any]) -> dict[str, Any]:
        """Perform one request; the answer of a request that AWS would refuse but moto does not comes from the shims."""
        from itbench.cloud.order import by_identifier
        from itbench.cloud.shims import refusal

        self._moved.move_to(request["unix"])
        if request["service"] == "ec2":
            by_identifier()
        refused = refusal(request["service"], request["action"], request["params"], request["region"])
        if refused is not None:
            return {"status": 400, "refused": list(refused), "type": "", "body": b""}
        try:
            return self._wsgi(request)
        except Exception as error:
            return {"status": 501, "type": "", "body": f"{type(error).__name__}: {error}".encode()}

    def _wsgi(self, request: dict[str, Any]) -> dict[str, Any]:
        from werkzeug.test import EnvironBuilder, run_wsgi_app

        builder = EnvironBuilder(
            method=request["method"],
            path=request["path"],
            query_string=request["query"],
            headers=dict(request["headers"]),
            data=request["body"],
        )
        body, status, headers = run_wsgi_app(self._application, builder.get_environ(), buffered=True)
        return {
            "status": int(status.split(" ", 1)[0]),
            "type": headers.get("Content-Type", ""),
            "headers": {
                key: value for key, value in headers.items() if key.lower().startswith(("x-amz", "etag", "loc"))
            },
            "body": b"".join(body),
        }


def _environment() -> None:
    os.environ.update(
        {
            "MOTO_ACCOUNT_ID": ACCOUNT,
            "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",
            "MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION": "true",
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
        }
    )


def main() -> None:
    """Entry point of `python -m itbench.cloud.child PARENT`: answer until the pipe is closed; dies with its parent."""
    die_with_parent(int(sys.argv[1]))
    gc.set_threshold(NEW_OBJECTS)
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that a library prints gets between the messages
    _environment()
    account: Account | None = None
    while (message := receive(source)) is not None:
        try:
            if message["op"] == "start":
                account = Account(message["seed"])
                send(sink, {})
            else:
                assert account is not None
                send(sink, account.http(message))
        except Exception:
            send(sink, {"error": traceback.format_exc()})


if __name__ == "__main__":
    main()
