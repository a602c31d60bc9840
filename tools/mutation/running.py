"""Runs the tests with one mutant at a time.

A Unit is a part of the tests that can be run by itself: a family of rows of tests/ops/derivatives, or one other test of
tests/ops. First each is run without a mutant: it must pass, and it reports the mutants that it reaches. A mutant is then run
with the units that reach it, the families first, the quick ones before the slow ones, until one of them fails. Failing is
a failed check, a crash, or more than TIMES its time (processor time: other programs do not count). A mutant that no
unit reaches survives.

Results are lines of JSON in BUILD/results.jsonl, appended immediately. A line counts as long as its `state`, the hash
of the sources, tests and scripts, is the present one.
"""
import json
import os
import re
import resource
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

TIMES, AT_LEAST, WAITING = 20, 10, 300  # limits of a run: a multiple of the unit's time, seconds; of waiting
MEMORY = 4 << 30


@dataclass
class Unit:
    name: str
    program: Path
    arguments: list
    family: bool
    seconds: float = 0
    asked: set = field(default_factory=set)


class Runner:
    def __init__(self, build, jobs, nice):
        self.build, self.jobs, self.nice = build, jobs, nice
        self.lock = threading.Lock()

    def run(self, unit, environment, limit):
        """How it ended: "passed", "failed", "crashed" or "too slow"."""
        def child():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
            os.nice(self.nice)
        try:
            code = subprocess.run([unit.program, *unit.arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env={**os.environ, "RETROGRAD_ISA": "baseline", **environment}, timeout=WAITING,
                                  preexec_fn=child, check=False).returncode
        except subprocess.TimeoutExpired:
            return "too slow"
        return "passed" if code == 0 else "failed" if code > 0 else "too slow" if code == -signal.SIGXCPU else "crashed"

    def measure(self, unit):
        """Its time and the mutants that it reaches, without a mutant."""
        reach = self.build / f"asked_{re.sub('[^a-z0-9_]', '_', unit.name)}"
        reach.unlink(missing_ok=True)
        begin = time.monotonic()
        if (outcome := self.run(unit, {"RETROGRAD_MUTANT_REACH": str(reach)}, 600)) != "passed":
            raise SystemExit(f"{unit.name}: {outcome} without a mutant")
        unit.seconds = time.monotonic() - begin
        unit.asked = set(map(int, reach.read_text().split())) if reach.exists() else set()

    def judge(self, mutant, units):
        for unit in units:
            how = self.run(unit, {"RETROGRAD_MUTANT": str(mutant.id)}, max(AT_LEAST, int(TIMES * unit.seconds)))
            if how != "passed":
                return {"outcome": "killed", "by": unit.name, "how": how}
        return {"outcome": "survived", "by": "", "how": "no test asks for it" if not units else "all tests pass"}

    def all(self, found, units, state, keep_killed):
        """The results of the mutants, by number. `keep_killed`: take those killed from any state."""
        log = self.build / "results.jsonl"
        done = {}
        if log.exists():
            for line in log.read_text().splitlines():
                entry = json.loads(line)
                if entry["state"] == state or (keep_killed and entry["outcome"] == "killed"):
                    done[tuple(entry["key"])] = entry
        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(self.measure, units))
            ordered = sorted(units, key=lambda u: (not u.family, u.seconds))
            waiting = [m for m in found if m.key() not in done]
            print(f"{len(found) - len(waiting)} results known, {len(waiting)} mutants to run", flush=True)
            begin, ready = time.monotonic(), [0]
            with log.open("a") as out:
                def one(mutant):
                    entry = {"state": state, "key": mutant.key(),
                             **self.judge(mutant, [u for u in ordered if mutant.id in u.asked])}
                    with self.lock:
                        done[mutant.key()] = entry
                        out.write(json.dumps(entry) + "\n")
                        out.flush()
                        ready[0] += 1
                        if ready[0] % 200 == 0:
                            print(f"  {ready[0]} of {len(waiting)}, {time.monotonic() - begin:.0f} s", flush=True)
                list(pool.map(one, waiting))
        return {m.id: done[m.key()] for m in found}
