"""Where truths lie: library, checkpoints, other trials, Ansible's files, others' kubeconfigs. No agent reads or writes them."""

import pytest

from itbench.agents import isolation
from itbench.agents.isolation import landlock
from itbench.agents.isolation.rules import readable_paths, visible, writable_paths
from itbench.agents.select import agent
from itbench.library.store import Library
from itbench.run.build import hidden_folders
from itbench.run.checkpoints import cache_home
from itbench.run.files import RunFolder

pytestmark = pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")


@pytest.fixture
def run(tmp_path):
    """A run of two trials: one finished, one at work; gives the folder of the one at work."""
    home = tmp_path / "home" / "user" / "results"
    folder = RunFolder(home / "first")
    done, mine = folder.trial("sre-12", "oracle", 1).path, folder.trial("sre-12", "./fix.sh", 1).path
    for file in (home / "first" / "run.yaml", done / "result.json", done / "evidence" / "submission.json"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("truth")
    for name in ("private/ansible/extravars", "private/kubeconfig-grader", "evidence/facts.json", "result.json"):
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).write_text("secret")
    (home.parent / "runs" / "earlier").mkdir(parents=True)
    (home.parent / "runs" / "earlier" / "result.json").write_text("truth")
    return mine


def test_no_hidden_place_is_below_a_readable_one(run):
    """Library, checkpoints, all trials of the run and the runs where the command was typed."""
    user = run.parents[5]
    hidden = (*isolation.always_hidden(run), *hidden_folders(Library(), run, user))
    shown = [str(path) for path in visible(hidden, user)]
    assert not [path for path in shown if path.startswith((str(run.parents[3]), str(user / "runs")))]
    confinement = isolation.Confinement(hidden=hidden, writable=(run / "workspace",))
    root = Library().roots[-1]
    parts = ("scenarios", "playbooks", "metrics", "suites", "tests", "docs", ".git")
    for place in (*(root / part for part in parts if (root / part).exists()), cache_home(), run, run.parents[3]):
        above = {str(place), *map(str, place.parents)}
        assert not above & {*readable_paths(confinement), *writable_paths(confinement)}


async def test_an_agent_reads_and_writes_nothing_of_its_own_and_other_trials(make_hand, run, tmp_path):
    """Every way to a file: reading, listing, writing, linking, moving."""
    others = run.parents[1] / "oracle" / "1"
    script = tmp_path / "attack.sh"
    script.write_text(f"""#!/bin/sh
for file in {others}/result.json {others}/evidence/submission.json {run}/private/kubeconfig-grader \
  {run}/private/ansible/extravars {run}/evidence/facts.json {run.parents[5]}/runs/earlier/result.json; do
  cat "$file" && exit 11
  echo '{{}}' > "$file" && exit 12
  ln "$file" mine && exit 13
  mv TASK.md "$file" && exit 14
done
ls {run} {others} {run.parents[3]} && exit 15
echo '{{"outcome": "pass"}}' > {run}/result.json && exit 16
mkdir {run}/evidence/more && exit 17
echo '{{"notes": "done"}}' | itbench submit
""")
    script.chmod(0o755)
    hand = make_hand(isolation="auto")
    hidden = (*hand.hidden, *hidden_folders(Library(), run, run.parents[5]))
    object.__setattr__(hand, "hidden", hidden)
    outcome = await agent("./attack.sh", tmp_path).run(hand)
    assert outcome.cause == "checks", outcome.detail
    assert (run / "result.json").read_text() == "secret" and (others / "result.json").read_text() == "truth"
