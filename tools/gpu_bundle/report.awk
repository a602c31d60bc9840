# awk -f report.awk gpu.jsonl... > gpu-report.md: a page of what run.sh wrote. Of a step that was run again
# the later result counts.
#
# Every line is a flat object of texts and numbers, as run.sh and the benchmarks print them. Nothing is
# computed but ratios of figures that were measured; what was not measured is said to be missing.
#
# Data: kept[list, i] are lines, i = 1 .. size[list], in the order of their first appearance. The lists: step,
# parity, train, gemm, memory (fusion, chain, adamw), replay, overhead, op, convolution, factorisation. `machine` and `device` are
# single lines.

# The value of a key, text or number; "" without it.
function value(line, key,    at, rest) {
  at = index(line, "\"" key "\":")
  if (!at) return ""
  rest = substr(line, at + length(key) + 3)
  sub(/^ */, "", rest)  # Python puts one there
  if (substr(rest, 1, 1) != "\"") {
    match(rest, /^[^,}]*/)
    return substr(rest, 1, RLENGTH)
  }
  match(rest, /^"([^"\\]|\\.)*"/)
  rest = substr(rest, 2, RLENGTH - 2)
  gsub(/\\"/, "\"", rest)
  gsub(/\\\\/, "\\", rest)
  return rest
}
# The values of keys, as cells of a table.
function values(line, keys,    names, n, i, text, v) {
  n = split(keys, names, " ")
  for (i = 1; i <= n; ++i) {
    v = value(line, names[i])
    gsub(/\|/, "/", v)
    text = text (i > 1 ? " | " : "") v
  }
  return text
}
# `key`: keys whose values tell the lines of a list apart.
function keep(list, keys,    id) {
  id = list SUBSEP values($0, keys)
  if (!(id in place)) place[id] = ++size[list]
  kept[list, place[id]] = $0
}
function row(text) { print "| " text " |" }
function head(title, columns,    n, i, names, line) {
  print "\n## " title "\n"
  row(columns)
  n = split(columns, names, /\|/)
  for (i = 1; i <= n; ++i) line = line "|---"
  print line "|"
}
# A table of a list; nothing where there is none.
function table(list, title, columns, keys,    i) {
  if (!size[list]) return
  head(title, columns)
  for (i = 1; i <= size[list]; ++i) row(values(kept[list, i], keys))
}
# A figure that is wanted. `holds` counts only where it was measured.
function wanted(what, bound, measured, holds) {
  row(what " | " bound " | " (measured == "" ? "not measured" : measured) " | " \
      (measured == "" ? "" : holds ? "yes" : "**no**"))
}
function is_peer(line) { return value(line, "step") ~ /^torch/ }

index($0, "\"machine\":") { machine = $0; next }
index($0, "\"multiprocessors\":") { device = $0; next }
index($0, "\"status\":") { keep("step", "part step"); next }
value($0, "bench") == "replay" { keep("replay", "model"); next }
index($0, "\"bench\":") { keep("memory", "step bench mode"); next }
index($0, "\"cublaslt\":") { keep("gemm", "m n k layout dtype"); next }
value($0, "step") ~ /^convolutions/ { keep("convolution", "step op inputs pass"); next }
value($0, "step") ~ /^factorisations/ { keep("factorisation", "step op inputs pass"); next }
index($0, "\"parity_of\":") { keep("parity", "step parity_of"); next }
index($0, "\"op\":") { keep("op", "op inputs pass"); next }
index($0, "\"forward_ns\":") { keep("overhead", "part"); next }
index($0, "\"tokens_per_s\":") { keep("train", "step") }

function tell_machine() {
  row("what | value")
  print "|---|---|"
  row("device | " (device == "" ? value(machine, "gpu") " (not used)" : value(device, "device") \
      ", compute capability " value(device, "major") "." value(device, "minor")))
  row("driver | " value(machine, "driver"))
  row("clocks of cores and memory, temperature, power | " value(machine, "clocks"))
  row("date | " value(machine, "date"))
  row("commit | " value(machine, "commit") ", packed " value(machine, "packed"))
  row("machine | " value(machine, "machine") ", " value(machine, "processors") " processors, " value(machine, "glibc"))
  row("products by | " value(device, "products_by") " " value(machine, "cublaslt"))
  row("convolutions by | " value(device, "convolutions_by") " " value(machine, "cudnn"))
  row("factorisations by | " value(device, "factorisations_by") " " value(machine, "cusolver"))
  row("fusion | " value(device, "fusion") " " value(machine, "nvrtc"))
  row("PyTorch | " value(machine, "torch"))
}

function tell_steps(    i, line, part, count, parts, number, open) {
  for (i = 1; i <= size["step"]; ++i) {
    part = value(kept["step", i], "part")
    if (!((part, "all") in number)) parts[++count] = part
    ++number[part, "all"]
    ++number[part, value(kept["step", i], "status")]
  }
  head("Steps", "part | pass | fail | timeout | skip")
  for (i = 1; i <= count; ++i)
    row(parts[i] " | " number[parts[i], "pass"] + 0 " | " number[parts[i], "fail"] + 0 " | " \
        number[parts[i], "timeout"] + 0 " | " number[parts[i], "skip"] + 0)
  print "\nWhat did not pass:\n"
  for (i = 1; i <= size["step"]; ++i) {
    line = kept["step", i]
    if (value(line, "status") == "pass") continue
    ++open
    print "- " value(line, "part") ", " value(line, "step") ": " value(line, "status") ", " value(line, "detail")
  }
  if (!open) print "- nothing"
}

# Of the details SUMMARY SUITE MODE pass=N fail=N unsupported=N. A run that did not end is told by its step.
function want_conformance(    i, n, runs, whole, pass, fail, unsupported, detail) {
  for (i = 1; i <= size["step"]; ++i) {
    detail = value(kept["step", i], "detail")
    if (value(kept["step", i], "part") != "conformance" || value(kept["step", i], "step") == "device") continue
    ++runs
    if (value(kept["step", i], "status") == "pass") ++whole
    if (!match(detail, /pass=[0-9]+ fail=[0-9]+ unsupported=[0-9]+/)) continue
    split(substr(detail, RSTART, RLENGTH), n, /[^0-9]+/)
    pass += n[2]
    fail += n[3]
    unsupported += n[4]
  }
  wanted("conformance, " whole + 0 " of " runs + 0 " runs of suites passed", "all, with fail=0 unsupported=0", \
         runs ? "pass=" pass + 0 " fail=" fail + 0 " unsupported=" unsupported + 0 : "", whole == runs && fail + unsupported == 0)
}

# Families of ops on the device against the CPU, within the tolerances that they print.
function want_parity(    i, runs, whole) {
  for (i = 1; i <= size["step"]; ++i) {
    if (value(kept["step", i], "part") != "parity" || value(kept["step", i], "step") !~ /^\[#/) continue
    ++runs
    if (value(kept["step", i], "status") == "pass") ++whole
  }
  wanted("parity with the CPU, families that passed", "all", runs ? whole + 0 " of " runs : "", whole == runs)
}

# The worst shape of those whose sides are all at least so long.
function want_products(dtype, least,    i, line, ratio, worst, where) {
  for (i = 1; i <= size["gemm"]; ++i) {
    line = kept["gemm", i]
    if (value(line, "dtype") != dtype || value(line, "cublaslt") + 0 == 0) continue
    if (value(line, "m") + 0 < least || value(line, "n") + 0 < least || value(line, "k") + 0 < least) continue
    ratio = value(line, "retrograd") / value(line, "cublaslt")
    if (where != "" && ratio >= worst) continue
    worst = ratio
    where = values(line, "m n k layout")
    gsub(/ \| /, " ", where)
  }
  wanted("products in " dtype ", of cuBLASLt's rate, worst shape" (least > 1 ? " of " least " and more" : ""), "0.9", \
         where == "" ? "" : sprintf("%.3f (%s)", worst, where), worst >= 0.9)
}

function want_share(bench, mode, what,    i, line, share) {
  for (i = 1; i <= size["memory"]; ++i) {
    line = kept["memory", i]
    if (value(line, "bench") == bench && value(line, "mode") == mode && !is_peer(line)) share = value(line, "share")
  }
  wanted(what ", of the copy's rate", "0.9", share, share + 0 >= 0.9)
}

function want_replay(    i, us, most) {
  for (i = 1; i <= size["replay"]; ++i) {
    us = value(kept["replay", i], "launch_us")
    if (most == "" || us + 0 > most + 0) most = us
  }
  wanted("launching a replayed step, us", "15", most, most + 0 <= 15)
}

# The best speeds of both sides.
function want_gpt(    i, line, speed, ours, theirs) {
  for (i = 1; i <= size["train"]; ++i) {
    line = kept["train", i]
    speed = value(line, "tokens_per_s") + 0
    if (value(line, "model") != "gpt-124m") continue
    if (is_peer(line) && speed > theirs + 0) theirs = speed
    if (!is_peer(line) && speed > ours + 0) ours = speed
  }
  wanted("gpt-124m, bf16, 16 x 1024, tokens/s of PyTorch's best", "above 1", \
         ours && theirs ? sprintf("%.3f (%d of %d)", ours / theirs, ours, theirs) : "", ours > theirs)
}

# us of what `line` measures, in a step by the library, whose figures say by `mark` whether it did compute.
function library_us(list, step, line, mark,    i, other, keys) {
  keys = "op inputs pass"
  for (i = 1; i <= size[list]; ++i) {
    other = kept[list, i]
    if (value(other, "step") != step) continue
    if (values(other, keys) == values(line, keys)) return value(other, mark) + 0 ? value(other, "us") : "declined"
  }
  return "not measured"
}

# What was measured by our kernels and by a library; with an arithmetic of its own for float32, if there is one.
function tell_sides(list, title, mark, arithmetic,    i, line, dtype, ours, theirs, steps) {
  if (!size[list]) return
  steps = list "s by the library, "
  head(title ", us", "op | inputs | pass | dtype | our kernels | library | ours / library" \
       (arithmetic ? " | library in " arithmetic : ""))
  for (i = 1; i <= size[list]; ++i) {
    line = kept[list, i]
    if (value(line, "step") !~ /our kernels/) continue
    dtype = value(line, "dtype")
    ours = value(line, "us")
    theirs = library_us(list, steps dtype, line, mark)
    row(values(line, "op inputs pass dtype us") " | " theirs " | " (theirs + 0 ? sprintf("%.2f", ours / theirs) : "") \
        (arithmetic ? " | " (dtype == "float32" ? library_us(list, steps arithmetic, line, mark) : "") : ""))
  }
}

function tell_wanted() {
  head("What is wanted", "what | wanted | measured | holds")
  want_conformance()
  want_parity()
  want_products("float32", 1)
  want_products("float32", 1024)
  want_products("bfloat16", 1)
  want_products("bfloat16", 1024)
  want_share("chain", "compiled", "a fused chain")
  want_share("adamw", "eager", "AdamW")
  want_replay()
  want_gpt()
}

END {
  print "# Report of a GPU\n"
  if (machine == "") {
    print "Nothing was run."
    exit
  }
  print "Made by `tools/gpu_bundle/report.awk` of what `run.sh` wrote"
  print "([tools/gpu_bundle/README.md](../tools/gpu_bundle/README.md)).\n"
  tell_machine()
  tell_steps()
  tell_wanted()
  table("parity", "Parity with the CPU: elements that are not equal, relative tolerance, and the worst of what was allowed", \
        "family | dtype | not equal | tolerance | worst / allowed", "step parity_of unequal tolerance worst")
  table("train", "Training steps", "step | step ms | tokens/s | first s | tflops | peak tflops, measured | of peak | products ms | peak bytes | planned", \
        "step step_ms tokens_per_s first_s tflops peak_tflops share gemm_ms peak_bytes planned_bytes")
  table("memory", "Memory-bound work", "step | bench | mode | elements | copy ms | eager ms | loss compiled ms | torch.compile ms | step ms | of the copy's rate", \
        "step bench mode elements copy_ms eager_ms compiled_ms compile_ms step_ms share")
  table("gemm", "Products of matrices, GF/s", "m | n | k | layout | dtype | retrograd | cuBLASLt", \
        "m n k layout dtype retrograd cublaslt")
  table("replay", "Replay of a compiled step, us", "model | launch | alone | in a stream | segments | graph launches | launches | copies", \
        "model launch_us alone_us stream_us segments graph_launches launches copies")
  table("overhead", "One-element ops, ns each, the device waited for", "forward | recording | backward | replay", \
        "forward_ns record_ns backward_ns replay_ns")
  tell_sides("convolution", "Convolutions", "dnn", "TF32")
  tell_sides("factorisation", "Factorisations", "solver", "")
  table("op", "Single ops", "op | inputs | pass | us | rate | unit | of the limit", "op inputs pass us rate unit share")
}
