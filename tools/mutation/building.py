"""Writes the mutated sources and makes the test programs of them.

A Mutant is one alteration: its number, place and texts. The mutated copy of a file holds all its mutants, each on a line
of its own, so that an error of the compiler tells which mutant to drop:

    (
    ::retrograd::mutation::is<decltype(x - y), decltype(x + y)>(17) ? (x + y) :
    (x - y))

Copies are in BUILD/src and come first in the include path. Objects of copies come before the libraries when the tests
are linked, hence their functions win; kernels are compiled for the baseline instruction set, and tests are run with
RETROGRAD_ISA=baseline.
"""
import hashlib
import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import mutants
from cpp_expressions import roots_of, walk
from cpp_functions import KERNELS, formulas_of, functions_of, tokens_of

# Instantiations of the `backward` and `fwd` of ops.
SPANS = ["cpu/kernels/levels/spans_activations.cc", "cpu/kernels/levels/spans_binary.cc"]
FLAGS = ["-std=c++20", "-O1", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-w"]
SIBLINGS = '#include "ops/arithmetic.h"\n#include "ops/unary.h"\n'  # whose functions a mutant may call
NUMBER = re.compile(r"^::retrograd::mutation::is<.*>\((\d+)\) \? ")


@dataclass
class Mutant:
    id: int
    file: str
    function: str
    line: int
    before: str
    after: str

    def key(self):
        return (self.file, self.function, self.before, self.after)


def squeezed(text):
    return re.sub(r"\s+", " ", re.sub(r"//[^\n]*", "", text)).strip()


def shown(text):
    return squeezed(text).replace(mutants.MINUS, "-").replace("::retrograd::Tensor", "Tensor")


class Sources:
    """The files with formulas, and the mutants of those that a filter names."""

    def __init__(self, root, filters):
        self.root, self.texts, functions = root, {}, []
        for path in sorted([*root.glob("ops/*.cc"), *root.glob("ops/*.h"), *(root / k for k in KERNELS)]):
            name = str(path.relative_to(root))
            self.texts[name] = path.read_text()
            functions += functions_of(name, tokens_of(self.texts[name]))
        self.roots, self.mutants, self.keys = {}, {}, {}
        for f in formulas_of(functions):
            if not filters or any(x in f.file for x in filters):
                self.add(f)

    def add(self, function):
        text = self.texts[function.file]
        roots = roots_of(function)
        self.roots.setdefault(function.file, []).extend(roots)
        for root in roots:
            mutants.mutate(root, text, function.result)
            for node, statement in walk(root, root):
                kept, node.ids = [], []
                for after in node.mutants:
                    number = self.number(function, statement, node, text, after)
                    if number:
                        kept.append(after)
                        node.ids.append(number)
                node.mutants = kept

    def number(self, function, root, node, text, after):
        """The number of a new mutant; 0 if another node of the tree gives the same text."""
        label = function.label()
        mutant = Mutant(len(self.mutants) + 1, function.file, label, text.count("\n", 0, node.start) + 1,
                        shown(text[root.start:root.end]),
                        shown(text[root.start:node.start] + after + text[node.end:root.end]))
        while (other := self.keys.get(mutant.key())) and other is not root:
            mutant.function += "'"  # the same statement occurs twice
        if other:
            return 0
        self.keys[mutant.key()] = root
        self.mutants[mutant.id] = mutant
        return mutant.id

    def mutated(self, file, dropped):
        """The text of the copy."""
        text = self.texts[file]
        body = self.between(text, 0, len(text), self.roots[file], dropped)
        include = '#include "tools/mutation/mutation.h"\n'
        if file.endswith(".h"):
            return body.replace("#pragma once\n", "#pragma once\n" + include, 1)
        place = list(re.finditer(r"^#include .*\n", body, re.MULTILINE))[-1].end() if file.startswith("ops/") else 0
        return include + body[:place] + (SIBLINGS if place else "") + body[place:]

    def between(self, text, start, end, parts, dropped):
        out = []
        for part in sorted(parts, key=lambda p: p.start):
            if part.start < start:
                continue  # a callee's object begins where its call begins
            out += [text[start:part.start], self.rendered(text, part, dropped)]
            start = part.end
        return "".join(out) + text[start:end]

    def rendered(self, text, node, dropped):
        inner = self.between(text, node.start, node.end, node.parts, dropped)
        pristine = squeezed(text[node.start:node.end])
        lines = [f"::retrograd::mutation::is<decltype({pristine}), decltype({after})>({number}) ? ({after}) :\n"
                 for number, after in zip(node.ids, map(squeezed, node.mutants)) if number not in dropped]
        return "(\n" + "".join(lines) + f"({inner}))" if lines else inner


class Builder:
    def __init__(self, root, build, libraries, jobs, nice):
        self.root, self.build, self.libraries, self.jobs, self.nice = root, build, libraries, jobs, nice
        for folder in ("ops", "cpu/kernels/levels"):
            (build / "src" / folder).mkdir(parents=True, exist_ok=True)
        (build / "objects").mkdir(exist_ok=True)

    def compiler(self, *arguments, mutated=True):
        first = [f"-I{self.build}/src"] if mutated else []
        command = ["nice", "-n", str(self.nice), "g++", *FLAGS, *first, f"-I{self.root}/include", f"-I{self.root}",
                   "-isystem", "/usr/include/eigen3", "-DRG_ISA=baseline", "-DEigen=Eigen_baseline", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def write_sources(self, sources, dropped):
        for file in sources.roots:
            path, text = self.build / "src" / file, sources.mutated(file, dropped)
            if not path.exists() or path.read_text() != text:
                path.write_text(text)

    def drop_uncompilable(self, sources, state):
        """The numbers of mutants that do not compile; `state`: a name for the sources, under which they are kept."""
        kept = self.build / "uncompilable.json"
        if kept.exists():
            known = json.loads(kept.read_text())
            if known["state"] == state:
                self.write_sources(sources, set(known["dropped"]))
                return set(known["dropped"])
        for old in (self.build / "src").rglob("*.*"):
            old.unlink()
        dropped = set()
        users = self.users(sources)
        self.write_sources(sources, dropped)
        with ThreadPoolExecutor(self.jobs) as pool:
            while users:
                results = list(pool.map(lambda f: self.errors_of(f), users))
                users = [f for f, errors in zip(users, results) if errors]
                dropped.update(*results)
                self.write_sources(sources, dropped)
        kept.write_text(json.dumps({"state": state, "dropped": sorted(dropped)}))
        return dropped

    def source(self, file):
        copy = self.build / "src" / file
        return copy if copy.exists() else self.root / file

    def errors_of(self, file):
        """The mutants for which the compiler reports errors."""
        run = self.compiler("-fsyntax-only", "-fmax-errors=0", self.source(file))
        numbers, lines = set(), {}
        for path, line in re.findall(r"^(\S+?):(\d+):\d+: error:", run.stderr, re.MULTILINE):
            text = lines.setdefault(path, (self.build / "src" / path).read_text().split("\n"))
            if found := NUMBER.match(text[int(line) - 1]):
                numbers.add(int(found[1]))
        if run.returncode and not numbers:
            raise SystemExit(f"{file} does not compile, and not for a mutant:\n{run.stderr[:3000]}")
        return numbers

    def object_of(self, file, mutated=True):
        """Compiled unless its preprocessed text has been compiled before."""
        source = self.source(file) if mutated else self.root / file
        text = self.compiler("-E", "-P", source, mutated=mutated)
        digest = hashlib.sha256(text.stdout.encode()).hexdigest()[:24]
        target = self.build / "objects" / f"{source.stem}_{digest}.o"
        if not target.exists():
            run = self.compiler("-c", source, "-o", f"{target}.new", mutated=mutated)
            if run.returncode:
                raise SystemExit(f"{file} does not compile:\n{run.stderr[:3000]}")
            (target.parent / f"{target.name}.new").rename(target)
        return target

    def objects_of(self, files, mutated=True):
        with ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(lambda f: self.object_of(f, mutated), files))

    def users(self, sources):
        """The files to compile: for a header all that may include it, first the file with all OpInfos and so all rules."""
        files = {f for f in sources.roots if f.endswith(".cc")}
        if len(files) == len(sources.roots):
            return sorted(files)
        files.update(SPANS, (str(p.relative_to(self.root)) for p in self.root.glob("ops/*.cc")))
        return ["ops/all_ops.cc", *sorted(files)]

    def mutated_objects(self, sources):
        return self.objects_of(["tools/mutation/mutation.cc", *self.users(sources)])

    def archives(self, pattern):
        """Those of the library: not those of its tests and examples, nor links to any in tests' run folders."""
        paths = {p: p.relative_to(self.libraries).parts for p in self.libraries.rglob(pattern)}
        return sorted(p for p, parts in paths.items() if parts[0] not in ("tests", "examples", "benchmarks")
                      and not any(x.endswith(".runfiles") for x in parts))

    def link(self, name, objects):
        whole, plain = self.archives("lib*.lo"), self.archives("lib*.a")
        target = self.build / name
        run = subprocess.run(
            ["g++", *map(str, objects), "-o", str(target), "-Wl,--allow-multiple-definition", "-Wl,--whole-archive",
             *map(str, whole), "-Wl,--no-whole-archive", "-Wl,--start-group", *map(str, plain), "-Wl,--end-group", "-lfmt",
             "-lxxhash", "-lpthread"], capture_output=True, text=True, check=False)
        if run.returncode:
            raise SystemExit(f"{name} does not link:\n{run.stderr[:3000]}")
        return target
