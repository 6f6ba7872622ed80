"""What a confined process can and cannot do, and that nothing of it outlives its trial."""

import asyncio
import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import itbench
from itbench.agents import isolation
from itbench.agents.hosting import exit_causes
from itbench.agents.isolation import landlock, rules
from itbench.core.errors import EnvironmentFault, UsageError
from itbench.tools import process
from itbench.tools.kubectl import binary

PACKAGE = Path(itbench.__file__).parent
needs_landlock = pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")


@pytest.fixture
def confine(tmp_path):
    """Runs argv confined to `ws`; gives exit, output, errors."""
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (tmp_path / "secret").write_text("truth")

    async def run(*argv, mode="auto", ports=(), readable=(), env=None):
        program = isolation.Program(
            list(argv),
            {"PATH": os.environ["PATH"], "HOME": str(workspace), **(env or {})},
            workspace,
            tmp_path / "out",
            tmp_path / "err",
        )
        confinement = isolation.Confinement(
            mode=mode,
            hidden=(*isolation.always_hidden(PACKAGE), tmp_path),
            writable=(workspace,),
            readable=readable,
            ports=ports,
        )
        child = await isolation.start(program, confinement)
        end = await child.wait()
        await child.close()
        read = [file.read_text() if file.exists() else "" for file in (tmp_path / "out", tmp_path / "err")]
        return end, *read

    run.folder = tmp_path
    run.workspace = workspace
    return run


def attempt(*expressions):
    """argv of a Python that evaluates expressions and prints `ok` or the error's name for each."""
    lines = ["import os, socket, json, pathlib"]
    for expression in expressions:
        lines += [
            "try:",
            f"    {expression}",
            "    print('ok')",
            "except Exception as e:",
            "    print(type(e).__name__)",
        ]
    return sys.executable, "-c", "\n".join(lines)


@needs_landlock
async def test_hidden_files_cannot_be_read_written_or_listed(confine):
    """Neither the secret beside the workspace, nor through a link, nor the scenarios of a checkout."""
    secret = confine.folder / "secret"
    (confine.workspace / "link").symlink_to(secret)
    end, out, _ = await confine(
        *attempt(
            f"open({str(secret)!r}).read()",
            "open('link').read()",
            f"open({str(secret)!r}, 'a')",
            f"os.listdir({str(confine.folder)!r})",
            f"os.listdir({str(PACKAGE.parent / 'scenarios')!r})",
            f"os.rename({str(secret)!r}, 'mine')",
            f"os.link({str(secret)!r}, 'mine')",
        )
    )
    assert end.code == 0
    assert set(out.split()) <= {"PermissionError", "FileNotFoundError", "OSError"}
    assert out.split()[:2] == ["PermissionError"] * 2
    assert secret.read_text() == "truth"


@needs_landlock
async def test_the_workspace_can_be_used_and_nothing_else_written(confine):
    """Reading the machine and writing the workspace work; writing elsewhere does not."""
    end, out, _ = await confine(
        *attempt(
            "open('a', 'w').write('x')",
            "os.mkdir('d'); os.rename('a', 'd/a')",
            "open('/etc/hostname').read()",
            "open('/dev/null', 'w').write('x')",
            "open('/etc/itbench-was-here', 'w')",
            f"open({str(PACKAGE / 'x.py')!r}, 'w')",
        )
    )
    assert end.code == 0
    assert out.split() == ["ok"] * 4 + ["PermissionError"] * 2


@needs_landlock
async def test_a_file_in_a_hidden_folder_can_be_given_back(confine):
    """The agent's own program may lie in a folder whose siblings are hidden."""
    own = confine.folder / "agent.py"
    own.write_text("print('mine')")
    end, out, _ = await confine(sys.executable, str(own), readable=(own,))
    assert (end.code, out) == (0, "mine\n")


@pytest.mark.skipif(landlock.abi() < landlock.TCP_ABI, reason="this kernel cannot confine TCP")
async def test_only_the_trials_ports_can_be_reached(confine):
    """A connection to the trial's own door works, one to another trial's is refused by the kernel."""
    with socket.create_server(("127.0.0.1", 0)) as own, socket.create_server(("127.0.0.1", 0)) as foreign:
        ports = [server.getsockname()[1] for server in (own, foreign)]
        connect = [f"socket.create_connection(('127.0.0.1', {port}))" for port in ports]
        _, out, _ = await confine(*attempt(*connect), ports=(ports[0],))
    assert out.split() == ["ok", "PermissionError"]


@pytest.mark.skipif(landlock.abi() < landlock.SIGNAL_ABI, reason="this kernel cannot confine signals")
async def test_other_processes_cannot_be_looked_into_or_ended(confine):
    """Neither the trial nor the warden: no command line, no memory, no signal."""
    me = os.getpid()
    _, out, _ = await confine(
        *attempt(
            f"open('/proc/{me}/cmdline').read()",
            f"open('/proc/{me}/environ').read()",
            f"open('/proc/{me}/mem')",
            f"os.kill({me}, 0)",
            "os.kill(os.getppid(), 9)",
            "open('/proc/self/status').read()",
        )
    )
    assert out.split() == ["PermissionError"] * 5 + ["ok"]


@needs_landlock
async def test_usual_programs_run_confined(confine):
    """Shell pipes, Python with packages, kubectl."""
    end, out, err = await confine("/bin/sh", "-c", "echo one | tr o 0")
    assert (end.code, out) == (0, "0ne\n"), err
    end, _, err = await confine(binary(), "version", "--client")
    assert end.code == 0, err
    end, _, err = await confine(sys.executable, "-c", "import pydantic, yaml")
    assert end.code == 0, err


@needs_landlock
async def test_no_new_rights_and_no_terminal(confine):
    """A confined process cannot gain privileges, has nothing on standard input, and leaves no core."""
    code = (
        "import os, resource, sys; print(sys.stdin.read() == '', resource.getrlimit(resource.RLIMIT_CORE)[0],"
        "os.getsid(0) == os.getpid(), [x.split()[1] for x in open('/proc/self/status') if 'NoNewPrivs' in x][0])"
    )
    _, out, _ = await confine(sys.executable, "-c", code)
    assert out.split() == ["True", "0", "True", "1"]


async def test_what_cannot_be_started_says_why(confine):
    """A missing program and one without a valid format."""
    end, _, _ = await confine("/no/such/program", mode="none")
    assert "FileNotFoundError" in end.not_started
    broken = confine.workspace / "broken"
    broken.write_bytes(b"\x00\x01")
    broken.chmod(0o755)
    end, _, _ = await confine(str(broken), mode="none")
    assert "OSError" in end.not_started


async def test_exit_codes_and_signals_come_back(confine):
    """As the program left them."""
    assert (await confine("/bin/sh", "-c", "exit 7", mode="none"))[0].code == 7
    assert (await confine("/bin/sh", "-c", "kill -9 $$", mode="none"))[0].signal == 9


def alive(pid):
    """Whether a process still runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition, seconds=20.0):
    """Poll until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


DAEMON = """
import os, sys, time
for name in ("child", "daemon"):
    if os.fork() == 0:
        if name == "daemon":
            os.setsid()
            if os.fork():
                os._exit(0)
        open(name + ".tmp", "w").write(str(os.getpid()))
        os.rename(name + ".tmp", name)
        time.sleep(600)
open("main", "w").write(str(os.getpid()))
{then}
"""


def pids(workspace, names=("child", "daemon", "main")):
    """Process ids that the daemon program wrote, once all are there."""
    wait_for(lambda: all((workspace / name).exists() and (workspace / name).read_text() for name in names))
    return [int((workspace / name).read_text()) for name in names]


async def test_what_an_agent_leaves_running_is_ended(confine):
    """Children and detached daemons are gone when the agent has exited."""
    script = DAEMON.format(then="")
    then = "import time\nwhile not all(os.path.exists(n) for n in ('child', 'daemon')): time.sleep(0.01)"
    end, _, err = await confine(sys.executable, "-c", script + then, mode="auto" if landlock.abi() else "none")
    assert end.code == 0, err
    assert [alive(pid) for pid in pids(confine.workspace)] == [False] * 3


PARENT = """
import asyncio, json, sys
from pathlib import Path
from itbench.agents import isolation
plan = json.loads(sys.argv[1])
async def main():
    ws = Path(plan["ws"])
    program = isolation.Program(plan["argv"], {"PATH": "/usr/bin:/bin"}, ws, ws / "out", ws / "err")
    child = await isolation.start(program, isolation.Confinement(mode=plan["mode"], writable=(ws,)))
    await child.wait()
asyncio.run(main())
"""


def test_an_agent_dies_with_its_trial_even_by_kill_9(tmp_path):
    """The trial's process is killed without warning; agent, children, daemons and warden are gone."""
    plan = {
        "ws": str(tmp_path),
        "argv": [sys.executable, "-c", DAEMON.format(then="time.sleep(600)")],
        "mode": "landlock" if landlock.abi() else "none",
    }
    trial = subprocess.Popen([sys.executable, "-c", PARENT, json.dumps(plan)])
    try:
        everyone = pids(tmp_path)
        warden = int(Path(f"/proc/{everyone[-1]}/stat").read_text().rpartition(")")[2].split()[1])
        assert all(alive(pid) for pid in [*everyone, warden])
        trial.send_signal(signal.SIGKILL)
        trial.wait()
        wait_for(lambda: not any(alive(pid) for pid in [*everyone, warden]))
    finally:
        trial.kill()
        trial.wait()


@pytest.mark.parametrize("where", ["workspace", "output"])
async def test_an_agent_that_fills_the_disk_is_ended_with_all_it_started(tmp_path, where):
    """Many small files or endless output: the total counts, not one file."""
    fill = (
        "for i in $(seq 100000); do head -c 100000 /dev/zero > f$i; done" if where == "workspace" else "cat /dev/zero"
    )
    program = isolation.Program(
        ["/bin/sh", "-c", f"sleep 600 & echo $! > child; {fill}"],
        {"PATH": "/usr/bin:/bin"},
        tmp_path,
        tmp_path / "out",
        tmp_path / "err",
    )
    mode = "auto" if landlock.abi() else "none"
    child = await isolation.start(program, isolation.Confinement(mode=mode, writable=(tmp_path,), disk=20 << 20))
    end = await child.wait()
    await child.close()
    assert end.exhausted == "it wrote more than 20 MiB"
    assert exit_causes(end)[0] == "resource_exhausted_by_agent"
    assert not alive(int((tmp_path / "child").read_text()))


async def test_stop_is_polite_first(tmp_path):
    """A program that heeds SIGTERM ends with its own code; one that does not is killed."""
    ready = tmp_path / "ready"
    for trap, code in (("trap 'exit 5' TERM", 5), ("trap '' TERM", None)):
        ready.unlink(missing_ok=True)
        script = f"{trap}; touch {ready}; while :; do sleep 0.1; done"
        program = isolation.Program(
            ["/bin/sh", "-c", script], {"PATH": "/bin"}, tmp_path, tmp_path / "o", tmp_path / "e"
        )
        child = await isolation.start(program, isolation.Confinement(mode="none"))
        while not ready.exists():
            await asyncio.sleep(0.01)
        assert (await child.stop()).code == code
        await child.close()


def test_isolation_is_never_silently_absent(monkeypatch):
    """Without Landlock `auto` is an error that says what to do; `none` must be asked for; nonsense is refused."""
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    for mode in ("auto", "landlock"):
        with pytest.raises(EnvironmentFault, match="--isolation none"):
            isolation.grade(mode)
    assert isolation.grade("none") == "none"
    with pytest.raises(UsageError, match="unknown isolation"):
        isolation.grade("jail")


@pytest.mark.parametrize(
    ("version", "tcp", "scopes"), [(1, 0, 0), (2, 0, 0), (3, 0, 0), (4, 3, 0), (5, 3, 0), (6, 3, 3), (7, 3, 3)]
)
def test_each_abi_governs_what_it_knows(version, tcp, scopes):
    """File rights grow with the ABI, TCP comes with 4, signals with 6."""
    files, *rest = landlock.handled(version)
    assert rest == [tcp, scopes]
    assert files == {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF}.get(version, 0xFFFF)


@needs_landlock
@pytest.mark.parametrize("version", range(1, landlock.abi() + 1))
def test_every_older_abi_can_be_used_on_this_kernel(version, tmp_path):
    """Rule sets of older kernels are accepted and hide files just as well."""
    (tmp_path / "secret").write_text("x")
    code = (
        f"import sys; sys.path.insert(0, {str(PACKAGE / 'agents' / 'isolation')!r}); import landlock;"
        f"landlock.restrict({version}, ['/usr', '/lib'], [], [1]);"
        f"\ntry: open({str(tmp_path / 'secret')!r})\nexcept PermissionError: print('hidden')"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "hidden\n"


TREE = [Path(place) for place in ("a/x/1", "a/x/2", "a/y/3", "b/x/4", "b/5", "c/z/6")]


@given(st.sets(st.sampled_from([*TREE, *{p for leaf in TREE for p in leaf.parents}])))
def test_visible_shows_everything_but_what_is_hidden(tmp_path_factory, hidden):
    """A leaf can be seen exactly when neither it nor a folder above it is hidden."""
    root = tmp_path_factory.getbasetemp() / "tree"
    for leaf in TREE:
        (root / leaf.parent).mkdir(parents=True, exist_ok=True)
        (root / leaf).touch()
    shown = rules.visible([root / path for path in hidden], root)
    for leaf in TREE:
        seen = any((root / leaf).is_relative_to(path) for path in shown)
        covered = any(leaf.is_relative_to(path) for path in hidden)
        assert seen == (not covered)


def test_a_readable_folder_does_not_uncover_what_is_hidden_below_it(tmp_path):
    """`--agent-dir` of a whole checkout shows the agent's files there, not the scenarios."""
    for name in ("scenarios", "mine"):
        (tmp_path / name).mkdir()
    hidden = (*isolation.always_hidden(PACKAGE), tmp_path / "scenarios", tmp_path.parent)
    paths = rules.readable_paths(isolation.Confinement(hidden=hidden, readable=(tmp_path,)))
    assert str(tmp_path / "mine") in paths
    assert not {str(tmp_path), str(tmp_path / "scenarios")} & set(paths)


def test_links_are_never_allowed(tmp_path):
    """A sibling that links to the hidden folder is left out."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "hidden")
    (tmp_path / "other").mkdir()
    assert rules.visible([tmp_path / "hidden"], tmp_path) == [tmp_path / "other"]


def test_a_checkout_hides_all_but_the_package_and_environments(tmp_path):
    """Scenarios, tests, history, runs: whatever lies beside the package."""
    for name in ("itbench", "scenarios", "tests", ".git", "venv"):
        (tmp_path / name).mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    hidden = isolation.always_hidden(tmp_path / "itbench", home=tmp_path / "home")
    inside = {path.name for path in hidden if path.parent == tmp_path}
    assert inside == {"scenarios", "tests", ".git", "pyproject.toml"}
    assert tmp_path / "home" / ".kube" in hidden


def test_keys_are_hidden_in_the_users_home_whatever_home_says(tmp_path, monkeypatch):
    """An empty $HOME does not open the folder in which the keys really lie."""
    monkeypatch.setenv("HOME", str(tmp_path))
    hidden = isolation.always_hidden(PACKAGE)
    real = Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert {tmp_path / ".ssh", real / ".ssh", real / ".cache" / "itbench"} <= set(hidden)


@pytest.mark.parametrize(
    "key", [".netrc", ".npmrc", ".git-credentials", ".config/gcloud/x", ".config/gh/hosts.yml", ".docker/config.json"]
)
def test_where_programs_keep_keys_is_hidden_and_what_lies_beside_is_not(tmp_path, key):
    """Keys of clouds, registries and forges are as hidden as those of kubectl and ssh."""
    for name in (key, ".config/mine/settings"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    seen = rules.visible(isolation.always_hidden(PACKAGE, home=tmp_path), tmp_path)
    assert not [path for path in seen if (tmp_path / key).is_relative_to(path)]
    assert [path for path in seen if (tmp_path / ".config/mine/settings").is_relative_to(path)]


@needs_landlock
async def test_programs_that_tools_start_have_no_more_rights_than_the_agent(tmp_path):
    """The wrapper confines any argv, passes input, output and exit code, and is nothing where isolation is `none`."""
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (tmp_path / "secret").write_text("truth")
    (workspace / "mine").write_text("mine")
    confinement = isolation.Confinement(hidden=(*isolation.always_hidden(PACKAGE), tmp_path), writable=(workspace,))
    wrap = isolation.wrapper(confinement, tmp_path / "plan.json")
    environ = {"PATH": os.environ["PATH"]}
    assert (await process.run(wrap(["/bin/cat", str(workspace / "mine"), "-"]), environ, stdin=b"!")).stdout == "mine!"
    refused = await process.run(wrap(["/bin/cat", str(tmp_path / "secret")]), environ)
    assert (refused.code, refused.stdout) == (1, "")
    assert "Permission denied" in refused.stderr
    assert isolation.wrapper(isolation.Confinement(mode="none"), tmp_path / "x")(["/bin/true"]) == ["/bin/true"]


def test_the_interpreter_and_the_package_stay_readable_wherever_they_are_installed(monkeypatch, tmp_path):
    """A virtual environment and a checkout under a hidden folder still start a Python agent."""
    for name in ("venv", "checkout/itbench", "secret"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(rules, "runtime", lambda: (tmp_path / "venv", tmp_path / "checkout/itbench"))
    seen = rules.readable_paths(rules.Confinement(hidden=(tmp_path,)))
    assert str(tmp_path / "venv") in seen and str(tmp_path / "checkout/itbench") in seen
    assert not any("secret" in path for path in seen)
    monkeypatch.undo()
    assert {str(path) for path in rules.runtime()} >= {sys.prefix, sys.base_prefix}
