"""A run: its folder, its documents, and the jobs it consists of. Called by `itbench run`."""

import datetime
import importlib.metadata
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from itbench import __version__
from itbench.core.documents.result import Lock, RunDocument
from itbench.core.errors import UsageError
from itbench.library.store import Library
from itbench.run.checkpoints import inputs_digest, sources_digest, tree_digest
from itbench.run.files import RunFolder, canonical, slug, write_atomic
from itbench.run.jobs import Job, clock_for

LOCKED_PACKAGES = ("ansible-core", "kubernetes", "moto", "numba", "numpy", "pydantic", "aiohttp")


@dataclass(frozen=True)
class Run:
    """A run on disk: what was asked for, and where it goes."""

    document: RunDocument
    folder: RunFolder

    def jobs(self, cwd: str = "") -> list[Job]:
        """Every trial that has no result yet."""
        document = self.document
        found = []
        for scenario in document.scenarios:
            for agent in document.agents:
                for trial in range(1, document.trials + 1):
                    folder = self.folder.trial(scenario, agent, trial)
                    if not folder.finished:
                        found.append(self._job(scenario, agent, trial, str(folder.path.resolve()), cwd))
        return found

    def _job(self, scenario: str, agent: str, trial: int, folder: str, cwd: str) -> Job:
        document = self.document
        return Job(
            scenario=scenario,
            agent=agent,
            trial=trial,
            seed=document.seed,
            clock=document.clock,
            environment=document.environment,
            kubeconfig=document.kubeconfig,
            isolation=document.isolation,
            answers=document.task,
            library=document.library,
            folder=folder,
            timeout_s=document.timeout_s,
            agent_dirs=document.agent_dirs,
            cwd=cwd,
        )


def default_folder(ids: tuple[str, ...]) -> Path:
    """`runs/<time>-<what>`, numbered when it exists already."""
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    base = Path("runs") / f"{stamp}-{slug(ids[0]) if len(ids) == 1 else f'{len(ids)}-scenarios'}"
    folder, number = base, 2
    while folder.exists():
        folder, number = base.with_name(f"{base.name}-{number}"), number + 1
    return folder


def create(document: RunDocument, folder: Path, library: Library) -> Run:
    """Make the folder of a new run, with `run.yaml` and `lock.json`.

    Raises:
        UsageError: the folder holds something already, or cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        used = any(folder.iterdir())
    except OSError as error:
        raise UsageError(
            "cannot make the run's folder", seen=str(folder), expected="a writable place", hint=str(error)
        ) from error
    if used:
        raise UsageError(
            "the folder is not empty",
            seen=str(folder),
            expected="a new folder",
            hint="go on with --resume, or choose another --out",
        )
    import yaml

    write_atomic(
        folder / "run.yaml", yaml.safe_dump(document.model_dump(mode="json", by_alias=True), sort_keys=False).encode()
    )
    write_atomic(folder / "lock.json", canonical(lock(document, library).model_dump(mode="json", by_alias=True)))
    return Run(document, RunFolder(folder))


def resume(folder: Path) -> Run:
    """A run that was begun before.

    Raises:
        UsageError: no run there, or its document is damaged.
    """
    from itbench.core.documents.base import DocumentError, load

    if not (folder / "run.yaml").is_file():
        raise UsageError("no run there", seen=str(folder), expected="the folder of a run, with run.yaml")
    try:
        return Run(load(RunDocument, folder / "run.yaml"), RunFolder(folder))
    except DocumentError as error:
        raise UsageError("the run's folder is damaged", seen=str(folder), hint=str(error)) from error


def unchanged(run: Run, library: Library) -> None:
    """Make sure that what is left of a run would be measured like what is there.

    Raises:
        UsageError: a version or an input is another than when the run began, or `lock.json` cannot be read.
    """
    from itbench.core.documents.base import DocumentError, load

    try:
        then = load(Lock, run.folder.path / "lock.json")
    except DocumentError as error:
        raise UsageError("the run's folder is damaged", seen=str(run.folder.path), hint=str(error)) from error
    old, new = _flat(then), _flat(lock(run.document, library))
    other = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    if other:
        raise UsageError(
            "the run was begun with other inputs",
            seen=f"changed: {', '.join(other)}",
            expected="what lock.json says",
            hint="begin a new run; results of both would not be comparable",
        )


def _flat(document: Lock) -> dict[str, str]:
    data = document.model_dump(mode="json", by_alias=True)
    inner = {f"{key} {name}": text for key in ("versions", "scenarios") for name, text in data.pop(key).items()}
    return {key: str(value) for key, value in data.items()} | inner


def lock(document: RunDocument, library: Library) -> Lock:
    """Hashes of every input, and versions."""
    versions = {"itbench": __version__, "python": platform.python_version(), "platform": sys.platform}
    versions |= {name: importlib.metadata.version(name) for name in LOCKED_PACKAGES}
    clocks = {clock_for(Job(scenario="", agent=agent, clock=document.clock)) for agent in document.agents}
    return Lock(
        versions=versions,
        scenarios={name: inputs_digest(library.scenario(name), library) for name in document.scenarios},
        playbooks=tree_digest(root / "playbooks" for root in library.roots if (root / "playbooks").is_dir()),
        metrics=tree_digest(root / "metrics" for root in library.roots if (root / "metrics").is_dir()),
        sources=sources_digest(),
        seed=document.seed,
        clock=", ".join(sorted(clocks)),
        isolation=document.isolation,
    )
