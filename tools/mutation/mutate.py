#!/usr/bin/env python3
"""Mutation test of the derivative formulas: alters them one by one and counts how many alterations the tests notice.

    ./bazelw build //... && tools/mutation/mutate.py                  # all of ops/, against bazel-bin's libraries
    tools/mutation/mutate.py --filter ops/softmax.cc --filter ops/matmul.cc

Python 3 and g++, nothing else. It
  1. finds the formulas of ops/ (cpp_functions.py), parses them (cpp_expressions.py) and generates alterations (mutants.py);
  2. writes copies of the sources that contain all of them and select one by an environment variable (building.py,
     mutation.h), drops those that do not compile, and links the tests of tests/ops with these copies;
  3. runs each mutant with the tests that reach it until one fails (running.py);
  4. reports: killed, survived, and those that equivalent.json says change nothing, each with its reason.
Objects and results are kept in --build: a second start continues where the first one ended. The exit status is 0 if at least
--least percent of the mutants that are not equivalent were killed. README.md has the figures of the last full run.
"""
import argparse
import collections
import hashlib
import json
import os
import re
import resource
import sys
import time
from pathlib import Path

from building import Builder, Sources
from running import Runner, Unit

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", action="append", default=[], metavar="FILE", help="only files whose path contains this")
    parser.add_argument("--libraries", type=Path, default=ROOT / "bazel-bin", help="where lib*.lo and lib*.a lie")
    parser.add_argument("--build", type=Path, default=ROOT / ".cache/mutation", help="for sources, objects, results")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--nice", type=int, default=10)
    parser.add_argument("--least", type=float, default=98.0, metavar="PERCENT")
    parser.add_argument("--survivors", action="store_true",
                        help="while a gap is closed: do not repeat what an earlier state of sources and tests killed")
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    return parser.parse_args()


def state_of(paths):
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(str(path).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def make_units(builder, mutated):
    """The test programs, and their parts."""
    tests = ROOT / "tests/ops"
    relative = lambda paths: [str(p.relative_to(ROOT)) for p in sorted(paths)]
    main = builder.objects_of(["tests/catch_main.cc", "tests/run_catch.cc"], mutated=False)
    table = builder.objects_of(relative(tests.glob("derivatives/*.cc")), mutated=False)
    program = builder.link("derivatives", [*mutated, *table, *main])
    families = re.findall(r'Family\{"(\w+)"', (tests / "derivatives/families.h").read_text())
    units = [Unit(f"derivatives of {f}", program, ["-a", "derivatives are right", "-c", f], True) for f in families]
    others = relative([*tests.glob("edges/*_test.cc"), *tests.glob("*_test.cc")])
    for file, made in zip(others, builder.objects_of(others, mutated=False)):
        units.append(Unit(file, builder.link(Path(file).stem, [*mutated, made, *main]), ["-a"], False))
    return units


def report(found, results, equivalent):
    """Prints the results of the mutants; returns the percentage that was killed."""
    rows, survivors = collections.defaultdict(collections.Counter), []
    for m in found:
        outcome = results[m.id]["outcome"]
        if m.key() in equivalent:
            if outcome == "killed":
                print(f"{m.file}:{m.line}: equivalent.json calls this equivalent, but {results[m.id]['by']} fails: {m.after}")
            else:
                outcome = "equivalent"
        rows[m.file][outcome] += 1
        if outcome == "survived":
            survivors.append(m)
    for m in survivors:
        print(f"\n{m.file}:{m.line}: {m.function}, {results[m.id]['how']} ({m.id})\n  - {m.before}\n  + {m.after}")
    print(f"\n{'file':28} killed survived equivalent")
    total = sum(rows.values(), collections.Counter())
    for file, row in [*sorted(rows.items()), ("all", total)]:
        print(f"{file:28} {row['killed']:6} {row['survived']:8} {row['equivalent']:10}")
    counted = total["killed"] + total["survived"]
    percent = 100 * total["killed"] / counted if counted else 100.0
    print(f"{len(found)} mutants, {total['killed']} killed, {total['equivalent']} equivalent, {percent:.2f} %")
    return percent


def main():
    options = arguments()
    begin = time.monotonic()
    sources = Sources(ROOT, options.filter)
    options.build.mkdir(parents=True, exist_ok=True)
    builder = Builder(ROOT, options.build.resolve(), options.libraries.resolve(), options.jobs, options.nice)
    scripts = [p for p in [*HERE.glob("*.py"), *HERE.glob("mutation.*")] if p.name != "mutate.py"]
    formulas = state_of([*scripts, *(ROOT / f for f in sources.texts)]) + "".join(options.filter)
    dropped = builder.drop_uncompilable(sources, formulas)
    found = [m for m in sources.mutants.values() if m.id not in dropped]
    print(f"{len(found)} mutants in {len(sources.roots)} files; {len(dropped)} more do not compile", flush=True)
    if options.list:
        for m in found:
            print(f"{m.id} {m.file}:{m.line} {m.function}\n  - {m.before}\n  + {m.after}")
        return
    units = make_units(builder, builder.mutated_objects(sources))
    print(f"built after {time.monotonic() - begin:.0f} s", flush=True)
    state = state_of([*scripts, *(ROOT / f for f in sources.texts), *ROOT.glob("tests/ops/**/*.*"),
                      *ROOT.glob("cpu/**/*.*"), *ROOT.glob("engine/*.*"), *ROOT.glob("autograd/*.*")])
    results = Runner(builder.build, options.jobs, options.nice).all(found, units, state, options.survivors)
    listed = json.loads((HERE / "equivalent.json").read_text())
    equivalent = {(e["file"], e["function"], e["before"], e["after"]) for e in listed}
    known = {m.key() for m in sources.mutants.values()}
    for key in equivalent - known:
        if not options.filter or any(f in key[0] for f in options.filter):
            print(f"{key[0]}: no such mutant any more: {key[3]}")
    percent = report(found, results, equivalent)
    used = sum(r.ru_utime + r.ru_stime for r in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
    print(f"{time.monotonic() - begin:.0f} s, {used:.0f} s of processors")
    sys.exit(percent < options.least)


if __name__ == "__main__":
    main()
