"""The driver of account trials: an AWS account behind its front, or only its bill. Made by `itbench.run.build`.

Class A rows have an account (and the bill of what is in it); class D rows have a generated bill alone. World dates are absolute.
"""

import asyncio
import datetime
import json
import secrets
from collections.abc import Callable
from typing import Any

from itbench.cloud.access import Identity
from itbench.cloud.anomalies import Bill, generate
from itbench.cloud.answers import variants
from itbench.cloud.bill import charges
from itbench.cloud.client import Clients
from itbench.cloud.estate import read_estate
from itbench.cloud.focus import write
from itbench.cloud.front import Front
from itbench.cloud.inventory import KEYS, Inventory, collect, snapshot
from itbench.cloud.prices import pricebook
from itbench.cloud.process import AccountProcess
from itbench.cloud.rating import future, monthly, nano
from itbench.cloud.trail import world_day
from itbench.cloud.waste import changes, history, plan, reference, replay
from itbench.core.clock import EPOCH, unix
from itbench.core.documents.result import Snapshot, Write
from itbench.core.documents.task import Endpoints
from itbench.core.errors import ScenarioDefect
from itbench.evaluate.ciso import account_symptom
from itbench.library.store import Library
from itbench.run.account_clock import AccountClock
from itbench.run.driver import Gate, Plan, Records
from itbench.stage.ansible import Play, run_play

TODAY = "2026-03-31"
"""The day of account trials whose scenario names none."""
REGION = "us-east-1"


def _identity(name: str, role: Any) -> Identity:
    """Keys are credentials: never derived from the seed, never in evidence."""
    return Identity(name, role, "AKIA" + secrets.token_hex(8).upper(), secrets.token_urlsafe(30))


class AccountDriver:
    """One account, or one bill."""

    def __init__(self, trial: Plan) -> None:
        self.plan = trial
        use = trial.scenario.environment.aws
        if use is None:
            raise ScenarioDefect("the scenario has no account", expected="environment.aws")
        self.folder = Library(trial.library).folder("estates", use.estate, "estate")
        self.variant = str(use.args.get("variant", "row"))
        self.role = str(use.args.get("role", "operator"))
        self.estate = read_estate(self.folder, seed=trial.seed, variant=self.variant)
        self.today = datetime.date.fromisoformat(trial.scenario.environment.today or TODAY)
        self.start_s = world_day(self.today.isoformat())
        self.clock = AccountClock(trial.clock, self.start_s)
        self.process = AccountProcess(trial.seed)
        self.front = Front(self.process, self.clock.now, self.clock.request)
        self.agent = _identity("oncall", self.role)
        self.grader = _identity("grader", "admin")
        self.names: dict[str, str] = {}
        self.bill: Bill | None = None
        self.first: Inventory = {key: [] for key in KEYS}
        self.inventory = self.first
        self.replayed: list[dict[str, Any]] = []
        self.database = trial.private / "bill" / "bill.sqlite"

    # -- standing up -----------------------------------------------------------------------------------------------

    @property
    def endpoints(self) -> Endpoints:
        """Where the agent finds account and bill."""
        databases = {"bill": str(self.database)} if self._billed else {}
        if not self.estate.account:
            return Endpoints(databases=databases)
        env = {
            "AWS_ACCESS_KEY_ID": self.agent.key,
            "AWS_SECRET_ACCESS_KEY": self.agent.secret,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
        }
        return Endpoints(databases=databases, aws_endpoint_url=self.front.url, aws_env=env)

    @property
    def _billed(self) -> bool:
        return self.plan.scenario.domain == "finops"

    @property
    def tools(self) -> tuple[str, ...]:
        """All that the endpoints can serve."""
        return ()

    @property
    def ports(self) -> tuple[int, ...]:
        """The front's port."""
        return (self.front.port,) if self.front.port else ()

    async def start(self) -> None:
        """An empty account."""
        if self.estate.account:
            await self.process.start()
            await self.front.start()
            self.front.admit(self.grader)

    async def stage(self, gate: Gate) -> None:
        """Ansible makes the estate; then the gate, then the faults of the scenario."""
        if self.estate.account:
            await self._play()
        await gate()
        if self.plan.scenario.faults:
            raise ScenarioDefect("account rows have their defects in the estate", seen=self.plan.scenario.faults[0].id)

    async def _play(self) -> None:
        stager, output = _identity("stager", "admin"), self.plan.private / "names.json"
        self.front.admit(stager)
        variables = {
            "estate_folder": str(self.folder),
            "estate_variant": self.variant,
            "estate_seed": self.plan.seed,
            "estate_now": unix(self.start_s),
            "estate_output": str(output),
            "aws_endpoint_url": self.front.url,
            "aws_access_key": stager.key,
            "aws_secret_key": stager.secret,
        }
        playbook = next(
            root / "playbooks" / "account.yml"
            for root in Library(self.plan.library).roots
            if (root / "playbooks" / "account.yml").is_file()
        )
        nowhere = self.plan.private / "no-kubeconfig"
        await run_play(Play(playbook, self.plan.private, nowhere, variables))
        self.front.expel("stager")
        self.names = json.loads(output.read_text())
        output.unlink()

    def save(self) -> Any:
        """Names and journal of the staged account, None once an agent has it; bill and history are made from the seed."""
        if not self.front.staging:
            return None
        return {"names": self.names, "journal": self.front.saved_journal(), "inventory": self.first}

    async def restore(self, data: Any) -> None:
        """The account from its journal: same order, same times, same identifiers."""
        self.names = dict(data["names"])
        await self.start()
        await self.front.replay(data["journal"])
        self.inventory = self.first = data["inventory"]
        self._remember()

    async def close(self) -> None:
        """End front and account."""
        await self.front.close()
        await self.process.close()

    # -- probing ---------------------------------------------------------------------------------------------------

    async def _collect(self) -> Inventory:
        if not self.estate.account:
            return self.first
        # A region that nobody has called is empty.
        used = {record.region for record in self.front.records if record.region and record.code < 400}
        regions = tuple(sorted({REGION, *used, *(entry.region for entry in self.estate.named())}))
        clients = Clients(self.front.url, self.grader)
        return await asyncio.to_thread(collect, clients, regions)

    async def baseline(self) -> str:
        """Everything of the estate is there and has a price; the bill is written."""
        self.inventory = self.first = await self._collect()
        text = json.dumps(self.first)
        missing = [name for name, identity in self.names.items() if _tracked(identity) and identity not in text]
        if missing:
            return "not in the account: " + ", ".join(sorted(missing))
        self._remember()
        return ""

    def _remember(self) -> None:
        """What is made from estate and inventory alone: CloudTrail's memory, the bill."""
        self.front.history = history(self.estate, self.names, self.start_s) if self.estate.account else []
        if self._billed:
            self._write_bill()

    def _write_bill(self) -> None:
        book = pricebook()
        if self.estate.bill is not None:
            spec, seed = self.estate.bill, self.plan.seed
            self.bill = generate(spec, book, today=self.today, seed=seed, variant=self.variant)
            write(self.database, self.bill.charges)
        else:
            write(self.database, charges(self.first, self.today, book))

    async def symptom(self) -> str:
        """Waste, or planted causes, are there and worth their trouble; in a twin there are none."""
        if not self._billed:
            return account_symptom(self.plan.scenario, self.first)
        worth = self._worth()
        if self.plan.scenario.symptom.none:
            return f"${worth:.2f} can be saved although nothing is wrong" if worth else ""
        return "" if worth >= 50 else f"only ${worth:.2f} are at stake; expected at least $50"

    def _worth(self) -> float:
        if self.bill is not None:
            return sum(cause.usd for cause in self.bill.causes)
        c0, _, best = self._costs()
        return float(c0 - best) / 1e9

    def _costs(self) -> tuple[int, int, int]:
        """Nano-dollars of the hidden future: doing nothing, as it is now, after the reference repair."""
        book, hours = pricebook(), self.estate.horizon_h
        start = EPOCH + datetime.timedelta(seconds=self.start_s)
        best = reference(self.first, plan(self.estate, self.names, self.start_s))
        c0, c1, c2 = (nano(future(one, start, hours, book)) for one in (self.first, self.inventory, best))
        return c0, c1, c2

    def page_values(self) -> dict[str, str]:
        """Identifiers by name, and numbers that repairs answer with."""
        values = {f"target.{name.replace('/', '.')}": identity for name, identity in self.names.items()}
        values["at.now"] = self.today.isoformat()
        if self.bill is not None:
            assert self.estate.bill is not None
            values |= {
                f"answer.{name}": json.dumps(text) for name, text in variants(self.bill, self.estate.bill).items()
            }
        elif self._billed:
            best = reference(self.first, plan(self.estate, self.names, self.start_s))
            saving = monthly(self.first, pricebook()) - monthly(best, pricebook())
            values["answer.saving"] = str(round(float(saving), 2))
        return values

    # -- the agent's time ------------------------------------------------------------------------------------------

    def count_steps(self, step: Callable[[], object]) -> None:
        """Requests past the tools are steps."""
        self.clock.on_step = step

    async def hand_over(self) -> None:
        """The agent's keys work and its clock runs; the audit log begins."""
        self.front.staging = False
        self.front.admit(self.agent)
        self.clock.go()

    async def submit(self) -> None:
        """The agent's keys end; the clock stands."""
        self.front.expel(self.agent.name)
        self.clock.stand()
        self.inventory = await self._collect()

    async def settle(self, seconds: float) -> None:
        """Let time pass, then look at the account again."""
        self.clock.pass_time(seconds)
        self.inventory = await self._collect()

    async def challenge(self) -> bool:
        """The hidden future: whoever needs something of the account comes for it."""
        if not (self._billed and self.estate.account):
            return False
        self.replayed = replay(self.inventory, plan(self.estate, self.names, self.start_s))
        self.clock.pass_time(self.estate.horizon_h * 3600.0)
        return True

    async def revert(self) -> None:
        """Nothing was injected: the defects are the estate's own."""

    # -- records ---------------------------------------------------------------------------------------------------

    def times(self) -> dict[str, float]:
        """The symptom is there from the start."""
        return {"symptom": self.start_s}

    def snapshot(self) -> Snapshot:
        """The inventory when it was last looked at."""
        return snapshot(round(self.clock.now(), 6), self.inventory)

    async def records(self) -> Records:
        """Writes of the agent, and what grading needs to know of account and bill."""
        facts: dict[str, Any] = {"today": self.today.isoformat()}
        if self.estate.account:
            facts |= self._account_facts()
        if self.bill is not None:
            facts["causes"] = [cause.answer() for cause in self.bill.causes]
        return Records(writes=[_write(record) for record in self.front.records if self._deed(record)], facts=facts)

    def _deed(self, record: Any) -> bool:
        return record.user == self.agent.name and not record.reads

    def _account_facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "inventory": self.inventory,
            "names": self.names,
            "changes": list(changes(self.first, self.inventory)),
            "gaps": self.front.gaps,
        }
        if self._billed:
            c0, c1, best = self._costs()
            book = pricebook()
            facts["plan"] = self._priced_plan()
            facts["replay"] = self.replayed
            facts["bill"] = {
                "horizon_h": self.estate.horizon_h,
                "c0_nano": c0,
                "c1_nano": c1,
                "reference_nano": best,
                "monthly_saving_usd": round(float(monthly(self.first, book) - monthly(self.inventory, book)), 6),
            }
        return facts

    def _priced_plan(self) -> dict[str, Any]:
        """The plan with what each volume costs a month."""
        found = plan(self.estate, self.names, self.start_s)
        for volume in self.first["Volumes"]:
            if volume["VolumeId"] in found:
                usd = float(monthly({"Volumes": [volume]}, pricebook()))
                found[volume["VolumeId"]]["monthly_usd"] = round(usd, 6)
        return found


def _tracked(identity: str) -> bool:
    """Identifiers of what an inventory lists."""
    return identity.startswith(("sg-", "pl-", "eni-", "i-", "vol-", "snap-", "arn:"))


def _write(record: Any) -> Write:
    """A call of the audit log as evidence: `ec2/vol-1` and `delete-volume`."""
    verb = "".join("-" + letter.lower() if letter.isupper() else letter for letter in record.action).strip("-")
    return Write(
        t=record.t,
        user=record.user,
        verb=verb,
        resource=record.service,
        namespace=record.region,
        name=record.name,
        code=record.code,
        after=record.params,
    )


def make(plan: Plan) -> AccountDriver:
    """The driver of one trial."""
    return AccountDriver(plan)
