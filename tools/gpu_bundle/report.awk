# awk -f report.awk gpu.jsonl... > gpu-report.md: a page of what run.sh wrote; later runs of a step take the place of earlier ones.
#
# Every line is a flat object of texts and numbers, as run.sh and the benchmarks print them. Nothing is computed here but ratios of figures
# that were measured; what was not measured is said to be missing.

function value(line, key,    at, rest) {
  at = index(line, "\"" key "\":")
  if (!at) return ""
  rest = substr(line, at + length(key) + 3)
  if (substr(rest, 1, 1) != "\"") { match(rest, /^[^,}]*/); return substr(rest, 1, RLENGTH) }
  match(rest, /^"([^"\\]|\\.)*"/)
  rest = substr(rest, 2, RLENGTH - 2)
  gsub(/\\"/, "\"", rest); gsub(/\\\\/, "\\", rest)
  return rest
}
function note(list, key, line) {
  if (!((list, key) in kept)) order[list, ++number[list]] = key
  kept[list, key] = line
}
function row(text) { gsub(/ *\| */, " | ", text); print "| " text " |" }
function cell(text) { gsub(/\|/, "/", text); return text }
function check(what, wanted, measured, holds) {
  row(what " | " wanted " | " (measured == "" ? "not measured" : measured) " | " (measured == "" ? "" : holds ? "yes" : "**no**"))
}
function least(a, b) { return a == "" || b + 0 < a + 0 ? b + 0 : a }

{
  part = value($0, "part")
  if (index($0, "\"machine\":")) { note("machine", part, $0); machine = $0; next }
  if (index($0, "\"status\":")) note("step", part SUBSEP value($0, "step"), $0)
  else if (index($0, "\"gemm_ms\":") || index($0, "\"first_s\":") && index($0, "\"step_ms\":")) note("train", value($0, "step"), $0)
  else if (index($0, "\"cublaslt\":")) note("gemm", value($0, "shapes") value($0, "m") "x" value($0, "n") "x" value($0, "k") value($0, "layout") value($0, "dtype"), $0)
  else if (value($0, "bench") == "replay") note("replay", value($0, "model"), $0)
  else if (index($0, "\"bench\":")) note("memory", value($0, "step") value($0, "bench") value($0, "mode"), $0)
  else if (index($0, "\"op\":")) note("op", value($0, "op") value($0, "inputs") value($0, "pass"), $0)
  else if (index($0, "\"forward_ns\":")) note("overhead", "", $0)
  else if (index($0, "\"multiprocessors\":")) device = $0
}

END {
  print "# Report of a GPU\n"
  if (machine == "") { print "Nothing was run."; exit }
  print "Made by `tools/gpu_bundle/report.awk` from what `run.sh` wrote there. How it is run: [tools/gpu_bundle/README.md](../tools/gpu_bundle/README.md).\n"
  row("what | value"); row("--- | ---")
  row("device | " (device == "" ? value(machine, "gpu") " (could not be used)" : value(device, "device") ", compute capability " value(device, "major") "." value(device, "minor")))
  row("driver | " value(machine, "driver")); row("date | " value(machine, "date"))
  row("commit | " value(machine, "commit")); row("machine | " value(machine, "machine") ", " value(machine, "processors") " processors, " value(machine, "glibc"))
  row("cuBLASLt, products by | " value(machine, "cublaslt") ", " value(device, "products_by"))
  row("NVRTC | " value(machine, "nvrtc")); row("PyTorch | " value(machine, "torch"))

  print "\n## Steps\n"; row("part | pass | fail | timeout | skip"); row("--- | --- | --- | --- | ---")
  for (i = 1; i <= number["step"]; ++i) {
    line = kept["step", order["step", i]]; part = value(line, "part"); ++status[part, value(line, "status")]
    if (!(part in seen)) { seen[part] = 1; parts[++count] = part }
  }
  for (i = 1; i <= count; ++i)
    row(parts[i] " | " status[parts[i], "pass"] + 0 " | " status[parts[i], "fail"] + 0 " | " status[parts[i], "timeout"] + 0 " | " status[parts[i], "skip"] + 0)
  print "\nWhat did not pass:\n"
  for (i = 1; i <= number["step"]; ++i) {
    line = kept["step", order["step", i]]
    if (value(line, "status") == "pass") continue
    print "- " value(line, "part") ", " value(line, "step") ": " value(line, "status") ", " value(line, "detail"); ++open_steps
  }
  if (!open_steps) print "- nothing"

  # Conformance: of the lines SUMMARY SUITE MODE pass=N fail=N unsupported=N.
  for (i = 1; i <= number["step"]; ++i) {
    line = kept["step", order["step", i]]
    if (value(line, "part") != "conformance" || !match(value(line, "detail"), /pass=[0-9]+ fail=[0-9]+ unsupported=[0-9]+/)) continue
    split(substr(value(line, "detail"), RSTART, RLENGTH), n, /[^0-9]+/)
    passed += n[2]; failed += n[3]; unsupported += n[4]; ++suites
  }
  for (i = 1; i <= number["gemm"]; ++i) {
    line = kept["gemm", order["gemm", i]]
    if (value(line, "cublaslt") + 0 == 0) continue
    ratio = value(line, "retrograd") / value(line, "cublaslt")
    worst[value(line, "dtype")] = least(worst[value(line, "dtype")], ratio)
  }
  for (i = 1; i <= number["memory"]; ++i) {
    line = kept["memory", order["memory", i]]; bench = value(line, "bench"); mode = value(line, "mode")
    if (value(line, "share") != "" && (mode == "compiled" || mode == "step")) share[bench] = value(line, "share")
  }
  for (i = 1; i <= number["replay"]; ++i) {
    us = value(kept["replay", order["replay", i]], "launch_us"); if (us + 0 > launch + 0) launch = us
  }
  for (i = 1; i <= number["train"]; ++i) {
    line = kept["train", order["train", i]]; name = value(line, "step")
    if (value(line, "model") != "gpt-124m") continue
    speed = value(line, "tokens_per_s") + 0
    if (name ~ /^torch/) { if (speed > theirs + 0) theirs = speed } else if (speed > ours + 0) ours = speed
  }
  print "\n## What is wanted\n"; row("what | wanted | measured | holds"); row("--- | --- | --- | ---")
  check("conformance, " suites + 0 " runs of suites", "fail=0 unsupported=0", suites ? "pass=" passed " fail=" failed " unsupported=" unsupported : "", failed + unsupported == 0)
  check("float32 products of cuBLASLt's rate, worst shape", "0.9", worst["float32"], worst["float32"] >= 0.9)
  check("bfloat16 products of cuBLASLt's rate, worst shape", "0.9", worst["bfloat16"], worst["bfloat16"] >= 0.9)
  check("a fused chain of the copy's rate", "0.9", share["chain"], share["chain"] >= 0.9)
  check("AdamW of the copy's rate", "0.9", share["adamw"], share["adamw"] >= 0.9)
  check("launching a replayed step, us", "15", launch, launch <= 15)
  check("gpt-124m bf16 16 x 1024, tokens/s of PyTorch's best", "above 1", ours && theirs ? sprintf("%.3f (%d to %d)", ours / theirs, ours, theirs) : "", theirs && ours > theirs)

  if (number["train"]) {
    print "\n## Training steps\n"
    row("step | step ms | tokens/s | first s | tflops | of peak | products alone, ms | peak bytes | planned"); row("--- | --- | --- | --- | --- | --- | --- | --- | ---")
  }
  for (i = 1; i <= number["train"]; ++i) {
    line = kept["train", order["train", i]]
    row(cell(value(line, "step")) " | " value(line, "step_ms") " | " value(line, "tokens_per_s") " | " value(line, "first_s") " | " value(line, "tflops") " | " value(line, "share") " | " value(line, "gemm_ms") " | " value(line, "peak_bytes") " | " value(line, "planned_bytes"))
  }
  if (number["memory"]) { print "\n## Memory-bound work\n"; row("bench | mode | ms | copy ms | of the copy's rate"); row("--- | --- | --- | --- | ---") }
  for (i = 1; i <= number["memory"]; ++i) {
    line = kept["memory", order["memory", i]]
    ms = value(line, "step_ms"); if (ms == "") ms = value(line, "chain_ms"); if (ms == "") ms = value(line, "compile_ms")
    row((value(line, "step") ~ /^torch/ ? "PyTorch: " : "") value(line, "bench") " | " value(line, "mode") " | " ms " | " value(line, "copy_ms") " | " value(line, "share"))
  }
  if (number["gemm"]) { print "\n## Products of matrices, GF/s\n"; row("m n k | layout | dtype | retrograd | cuBLASLt | ratio"); row("--- | --- | --- | --- | --- | ---") }
  for (i = 1; i <= number["gemm"]; ++i) {
    line = kept["gemm", order["gemm", i]]
    row(value(line, "m") " " value(line, "n") " " value(line, "k") " | " value(line, "layout") " | " value(line, "dtype") " | " value(line, "retrograd") " | " value(line, "cublaslt") " | " (value(line, "cublaslt") + 0 ? sprintf("%.2f", value(line, "retrograd") / value(line, "cublaslt")) : ""))
  }
  if (number["replay"]) { print "\n## Replay of a step, us\n"; row("model | launch | alone | in a stream"); row("--- | --- | --- | ---") }
  for (i = 1; i <= number["replay"]; ++i) {
    line = kept["replay", order["replay", i]]
    row(value(line, "model") " | " value(line, "launch_us") " | " value(line, "alone_us") " | " value(line, "stream_us"))
  }
  if (number["overhead"]) {
    line = kept["overhead", ""]
    print "\nOne-element ops, ns each, the device waited for: forward " value(line, "forward_ns") ", recording " value(line, "record_ns") ", backward " value(line, "backward_ns") ", replay " value(line, "replay_ns") "."
  }
  if (number["op"]) { print "\n## Single ops below half of the device's limit\n"; row("op | inputs | pass | us | rate | share"); row("--- | --- | --- | --- | --- | ---") }
  for (i = 1; i <= number["op"]; ++i) {
    line = kept["op", order["op", i]]
    if (value(line, "share") < 0.5)
      row(cell(value(line, "op") " | " value(line, "inputs")) " | " value(line, "pass") " | " value(line, "us") " | " value(line, "rate") " " value(line, "unit") " | " value(line, "share"))
  }
}
