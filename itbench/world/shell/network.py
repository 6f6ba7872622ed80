"""Network commands of debug images: curl, wget, nslookup, dig, nc, ping, redis-cli; the interpreter finds them in `NETWORK`."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from itbench.kube.door import Request, Response
from itbench.world.shell.interpreter import Command, Steps, Tool
from itbench.world.stores import plain

TIMEOUT_S = 130.0
"""How long a connection attempt without a limit hangs (Linux SYN retries)."""
REASONS = {
    404: "Not Found",
    200: "OK",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    201: "Created",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    409: "Conflict",
    405: "Method Not Allowed",
    504: "Gateway Timeout",
    429: "Too Many Requests",
}


def _target(url: str) -> tuple[str, int, str]:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return parts.hostname or "", port, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


class _Curl:
    """The options of one curl call."""

    def __init__(self, argv: list[str]) -> None:
        self.method, self.body, self.url, self.output, self.format = "", "", "", "", ""
        self.headers: dict[str, str] = {"User-Agent": "curl/8.14.1", "Accept": "*/*"}
        self.trusts, self.authority = False, ""
        self.silent = self.show = self.include = self.fail = self.verbose = self.head = False
        self.limit = TIMEOUT_S
        items = iter(argv)
        for item in items:
            self._option(item, items)

    def _option(self, item: str, items: Iterator[str]) -> None:
        if item in ("-X", "--request"):
            self.method = next(items, "")
        elif item in ("-d", "--data", "--data-raw", "--data-binary", "--json"):
            self.body = next(items, "")
            if item == "--json":
                self.headers["Content-Type"] = "application/json"
        elif item in ("-H", "--header"):
            name, _, value = next(items, "").partition(":")
            self.headers[name.strip()] = value.strip()
        elif item in ("-o", "--output"):
            self.output = next(items, "")
        elif item in ("-w", "--write-out"):
            self.format = next(items, "")
        elif item in ("-m", "--max-time", "--connect-timeout"):
            value = next(items, "")
            self.limit = min(self.limit, float(value)) if re.fullmatch(r"\d+(\.\d+)?", value) else self.limit
        elif item in ("-u", "--user", "-A", "--user-agent", "--retry", "-b", "-x", "-e"):
            next(items, "")
        elif item == "--cacert":
            self.authority = next(items, "")
        elif item == "--url":
            self.url = next(items, "")
        elif item.startswith("--"):
            self._flags(
                {
                    "--silent": "s",
                    "--show-error": "S",
                    "--fail": "f",
                    "--include": "i",
                    "--head": "I",
                    "--verbose": "v",
                    "--insecure": "k",
                }.get(item, "")
            )
        elif item.startswith("-") and len(item) > 1:
            self._flags(item[1:])
            if item[-1] in "XdHowm":
                self._option(f"-{item[-1]}", items)
        else:
            self.url = item

    def _flags(self, letters: str) -> None:
        self.silent = self.silent or "s" in letters
        self.show = self.show or "S" in letters
        self.include = self.include or "i" in letters
        self.fail = self.fail or "f" in letters
        self.head = self.head or "I" in letters
        self.verbose = self.verbose or "v" in letters
        self.trusts = self.trusts or "k" in letters


def curl(call: Command) -> Steps:
    """curl [options] URL"""
    options = _Curl(call.argv[1:])
    if not options.url:
        call.io.err("curl: (2) no URL specified\n")
        return 2
    host, port, path = _target(options.url)
    method = options.method or ("HEAD" if options.head else "POST" if options.body else "GET")
    body = options.body
    if body.startswith("@"):
        body = call.io.stdin if body == "@-" else call.machine.read(call.shell.path(body[1:])) or ""
    request = Request(method, path, options.headers, body.encode())
    response, reason = call.machine.http(host, port, request)
    if response is None:
        return (yield from _curl_failed(call, options, host, port, reason))
    problem = _distrust(call, options, response)
    if problem is not None:
        if not options.silent or options.show:
            call.io.err(f"curl: ({problem[0]}) {problem[1]}\n")
        return problem[0]
    return _curl_answered(call, options, response)


def _distrust(call: Command, options: _Curl, response: Response) -> tuple[int, str] | None:
    """The code and the words of a refusal of the server's certificate. Which authority a file holds is not looked at."""
    if not options.url.startswith("https:") or not response.certificate or options.trusts:
        return None
    if not options.authority:
        more = "More details here: https://curl.se/docs/sslcerts.html"
        return 60, f"SSL certificate problem: unable to get local issuer certificate\n{more}"
    if "BEGIN CERTIFICATE" in (call.machine.read(call.shell.path(options.authority)) or ""):
        return None
    return 77, f"error adding trust anchors from file: {options.authority}"


def _curl_failed(call: Command, options: _Curl, host: str, port: int, reason: str) -> Steps:
    waited = min(options.limit, TIMEOUT_S) if reason in ("timeout", "denied") else 0.0
    if waited:
        yield waited
    texts = {
        "nxdomain": (6, f"Could not resolve host: {host}"),
        "refused": (7, f"Failed to connect to {host} port {port} after 1 ms: Could not connect to server"),
        "tls": (35, "TLS connect error: error:0A00010B:SSL routines::wrong version number"),
        "reset": (56, "Recv failure: Connection reset by peer"),
        "http2": (1, "Received HTTP/0.9 when not allowed"),
        "empty": (52, "Empty reply from server"),
    }
    code, text = texts.get(reason, (28, f"Connection timed out after {int(waited * 1000)} milliseconds"))
    if not options.silent or options.show:
        call.io.err(f"curl: ({code}) {text}\n")
    if options.format:
        call.io.out(_write_out(options.format, 0, 0))
    return code


def _curl_answered(call: Command, options: _Curl, response: Response) -> int:
    failed = options.fail and response.status >= 400
    text = "" if failed or options.head else response.body.decode("utf-8", "replace")
    if options.include or options.head:
        headers = "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
        text = f"HTTP/1.1 {response.status} {REASONS.get(response.status, '')}\r\n{headers}\r\n{text}"
    if options.output and options.output != "-":
        if options.output != "/dev/null":
            call.machine.write(call.shell.path(options.output), text)
    else:
        call.io.out(text)
    if options.format:
        call.io.out(_write_out(options.format, response.status, len(response.body)))
    if failed:
        if not options.silent or options.show:
            call.io.err(f"curl: (22) The requested URL returned error: {response.status}\n")
        return 22
    return 0


def _write_out(pattern: str, status: int, size: int) -> str:
    values = {
        "http_code": f"{status:03d}",
        "response_code": f"{status:03d}",
        "size_download": str(size),
        "time_total": "0.004213",
    }
    text = re.sub(r"%\{(\w+)\}", lambda hit: values.get(hit[1], ""), pattern)
    return text.replace("\\n", "\n").replace("\\t", "\t")


_NO_ANSWER = {
    "http2": "error getting response: Connection reset by peer",
    "reset": "error getting response: Connection reset by peer",
    "empty": "error getting response",
}
"""What wget says of a port that accepts the connection but does not speak HTTP/1."""


def wget(call: Command) -> Steps:
    """wget [-q] [-O FILE] [-T S] [--post-data D] URL"""
    output, url, limit, quiet, body, spider, shows = "", "", 900.0, False, "", False, False
    items = iter(call.argv[1:])
    for item in items:
        if item.startswith("--post-data"):
            body = item.partition("=")[2] or next(items, "")
        elif item.startswith(("--timeout", "-T")):
            value = item.partition("=")[2] or item[2:] if item != "-T" else next(items, "")
            limit = float(value) if value.isdigit() else limit
        elif item == "--spider":
            spider = True
        elif item.startswith("-") and not item.startswith("--"):
            quiet, shows = quiet or "q" in item, shows or "S" in item.partition("O")[0]
            if "O" in item:
                output = item.partition("O")[2] or next(items, "")
        elif not item.startswith("--"):
            url = item
    host, port, path = _target(url)
    response, reason = call.machine.http(host, port, Request("POST" if body else "GET", path, {}, body.encode()))
    if reason == "nxdomain":
        return call.fail(f"bad address '{host}'")
    found = (call.machine.resolve(host) or [host])[0]
    if not quiet:
        call.io.err(f"Connecting to {host}:{port} ({found}:{port})\n")
    if response is None:
        if reason in ("timeout", "denied"):
            yield limit
            return call.fail("download timed out")
        return call.fail(_NO_ANSWER.get(reason, f"can't connect to remote host ({found}): Connection refused"))
    status = f"HTTP/1.1 {response.status} {REASONS.get(response.status, '')}"
    if shows:
        fields = {"Content-Length": str(len(response.body)), **response.headers, "Connection": "close"}
        call.io.err("".join(f"  {line}\n" for line in (status, *(f"{key}: {value}" for key, value in fields.items()))))
    if response.status >= 400:
        return call.fail(f"server returned error: {status}")
    text = response.body.decode("utf-8", "replace")
    name = output or path.rsplit("/", 1)[-1] or "index.html"
    if spider:
        return 0
    if output == "-":
        call.io.out(text)
    else:
        call.machine.write(call.shell.path(name), text)
    return 0


def nslookup(call: Command) -> int:
    """nslookup NAME"""
    names = [item for item in call.argv[1:] if not item.startswith("-")]
    if not names:
        return call.fail("usage: nslookup NAME", 1)
    server = re.search(r"nameserver (\S+)", call.machine.read("/etc/resolv.conf") or "")
    address = server[1] if server else "10.96.0.10"
    call.io.out(f"Server:\t\t{address}\nAddress:\t{address}:53\n\n")
    found = call.machine.resolve(names[0])
    if not found:
        call.io.out(f"** server can't find {names[0]}: NXDOMAIN\n\n")
        return 1
    for item in found:
        call.io.out(f"Name:\t{names[0]}\nAddress: {item}\n\n")
    return 0


def dig(call: Command) -> int:
    """dig +short NAME, getent hosts NAME"""
    names = [item for item in call.argv[1:] if item[0] not in "+-@" and item not in ("hosts", "ahosts", "A")]
    found = call.machine.resolve(names[0]) if names else []
    for item in found:
        call.io.out(f"{item:<16}{names[0]}\n" if call.name.endswith("getent") else f"{item}\n")
    return 0 if found or call.name.endswith("dig") else 2


def netcat(call: Command) -> Steps:
    """nc -z [-v] [-w S] HOST PORT"""
    words, wait, verbose, items = [], TIMEOUT_S, False, iter(call.argv[1:])
    for item in items:
        if item.startswith("-w"):
            value = item[2:] or next(items, "")
            wait = float(value) if value.isdigit() else wait
        elif item.startswith("-"):
            verbose = verbose or "v" in item
        else:
            words.append(item)
    if len(words) < 2 or not words[1].isdigit():
        return call.fail("usage: nc [-z] [-v] [-w SEC] HOST PORT")
    host, port = words[0], int(words[1])
    verdict = call.machine.dial(host, port)
    if verdict == "ok":
        found = call.machine.resolve(host)
        if verbose:
            call.io.err(f"{host} ({found[0] if found else host}:{port}) open\n")
        return 0
    if verdict == "nxdomain":
        return call.fail(f"bad address '{host}'")
    if verdict == "refused":
        if verbose:
            call.io.err(f"nc: {host} ({(call.machine.resolve(host) or [host])[0]}:{port}): Connection refused\n")
        return 1
    yield wait
    if verbose:
        call.io.err(f"nc: {host} ({(call.machine.resolve(host) or [host])[0]}:{port}): Connection timed out\n")
    return 1


def ping(call: Command) -> Steps:
    """ping [-c N] HOST"""
    words = [item for item in call.argv[1:] if not item.startswith("-") and not item.isdigit()]
    found = call.machine.resolve(words[-1]) if words else []
    if not found:
        return call.fail(f"bad address '{words[-1] if words else ''}'")
    call.io.out(f"PING {words[-1]} ({found[0]}): 56 data bytes\n")
    yield 1.0
    call.io.out(f"\n--- {words[-1]} ping statistics ---\n1 packets transmitted, 0 packets received, 100% packet loss\n")
    return 1


def redis(call: Command) -> int:
    """redis-cli / valkey-cli [-h HOST] [-p PORT] COMMAND..."""
    host, port, items = "127.0.0.1", 6379, iter(call.argv[1:])
    words: list[str] = []
    typed = call.io.terminal
    for item in items:
        if item in ("--raw", "--no-raw") and not words:
            typed = item == "--no-raw"
        elif item == "-h" and not words:
            host = next(items, host)
        elif item == "-p" and not words:
            value = next(items, "")
            port = int(value) if value.isdigit() else port
        elif item in ("-n", "-a") and not words:
            next(items, "")
        elif item.startswith("-") and not words:
            continue
        else:
            words.append(item)
    tool = "Valkey" if call.name.endswith("valkey-cli") else "Redis"
    lines = [words] if words else [line.split() for line in call.io.stdin.splitlines() if line.strip()]
    for line in lines:
        reply, reason = call.machine.redis(host, port, line)
        if reply is None:
            text = {"nxdomain": "Name or service not known", "refused": "Connection refused"}.get(
                reason, "Connection timed out"
            )
            call.io.err(f"Could not connect to {tool} at {host}:{port}: {text}\n")
            return 1
        call.io.out(f"{reply if typed else plain(reply)}\n")
    return 0


NETWORK: dict[str, Tool] = {
    "curl": curl,
    "wget": wget,
    "nslookup": nslookup,
    "dig": dig,
    "getent": dig,
    "nc": netcat,
    "netcat": netcat,
    "ping": ping,
    "redis-cli": redis,
    "valkey-cli": redis,
}
