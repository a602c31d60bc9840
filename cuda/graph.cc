// See cuda/graph.h.
#include "cuda/graph.h"

#include <algorithm>

#include "cuda/gpu.h"

namespace retrograd::inline v0::cuda {
namespace {

constinit thread_local Recording* current_recording = nullptr;

}  // namespace

Table::Table(Gpu& gpu, std::span<const std::byte> bytes, std::string_view op)
    : gpu_(gpu),
      bytes_(bytes.begin(), bytes.end()),
      block_(gpu.memory().allocate(static_cast<int64_t>(bytes.size()), op)) {
  try {
    gpu.upload_now(block_->data, bytes.data(), static_cast<int64_t>(bytes.size()));
  } catch (...) {
    gpu.memory().free(block_);
    throw;
  }
}

Table::~Table() { gpu_.memory().free(block_); }

HeldNumbers::~HeldNumbers() {
  for (const Piece& piece : pieces_) gpu_.memory().free(piece.block);
}

const void* HeldNumbers::add(const void* attrs, size_t bytes, Write write, std::string_view op) {
  RG_ASSERT(bytes <= kMost);
  if (pieces_.empty() || pieces_.back().launches.size() == kLaunchesOfAPiece) {
    pieces_.reserve(pieces_.size() + 1);
    pieces_.push_back({gpu_.memory().allocate(int64_t{kLaunchesOfAPiece} * kMost, op)});
  }
  Piece& piece = pieces_.back();
  const size_t place = piece.now.size();
  piece.launches.push_back({attrs, write, bytes});
  piece.now.resize(place + kMost);
  return piece.block->data + place;
}

void HeldNumbers::renew() {
  for (Piece& piece : pieces_) renew(piece);
}

void HeldNumbers::renew(Piece& piece) {
  std::byte* known = piece.now.data();
  for (const Launch& l : piece.launches) {
    alignas(std::max_align_t) std::byte made[kMost];
    l.write(l.attrs, made);
    if (std::memcmp(known, made, l.bytes) != 0) {
      std::memcpy(known, made, l.bytes);
      piece.is_there = false;
    }
    known += kMost;
  }
  if (piece.is_there) return;
  gpu_.upload_now(piece.block->data, piece.now.data(), static_cast<int64_t>(piece.now.size()));
  gpu_.count_number_upload();
  piece.is_there = true;
}

const void* Recording::numbers(const void* attrs, size_t bytes, HeldNumbers::Write write,
                               std::string_view op) {
  if (!kept_.numbers) kept_.numbers = std::make_unique<HeldNumbers>(gpu_);
  return kept_.numbers->add(attrs, bytes, write, op);
}

const void* Recording::table(std::span<const std::byte> bytes, std::string_view op) {
  const auto known = std::ranges::find_if(before_.tables, [&](const auto& t) { return t->holds(bytes); });
  kept_.tables.push_back(known != before_.tables.end() ? *known : std::make_shared<Table>(gpu_, bytes, op));
  return kept_.tables.back()->data();
}

Recording::Recording(Gpu& gpu, Stream& stream, Kept& kept, const Kept& before)
    : gpu_(gpu), stream_(stream), kept_(kept), before_(before) {
  RG_ASSERT(!current_recording);
  current_recording = this;
}

Recording::~Recording() { current_recording = nullptr; }

Recording* Recording::of(const Gpu& gpu) {
  return current_recording && &current_recording->gpu_ == &gpu ? current_recording : nullptr;
}

// ---- temporary memory -----------------------------------------------------------------------------------------------

Allocator::Block* Rooms::take(int64_t bytes, std::string_view op) {
  std::lock_guard lock(mutex_);
  free_.reserve(free_.size() + ++taken_);  // reserved, so that give() never allocates
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it)
    if ((*it)->size >= bytes && (best == free_.end() || (*it)->size < (*best)->size)) best = it;
  if (best == free_.end()) return memory_.allocate(bytes, op);
  Allocator::Block* block = *best;
  free_.erase(best);
  return block;
}

void Rooms::give(Allocator::Block* block) noexcept {
  std::lock_guard lock(mutex_);
  --taken_;
  free_.push_back(block);
}

void Rooms::add_graph() {
  std::lock_guard lock(mutex_);
  ++graphs_;
}

void Rooms::drop_graph() noexcept {
  std::lock_guard lock(mutex_);
  if (--graphs_ > 0) return;
  for (Allocator::Block* block : free_) memory_.free(block);
  free_.clear();
}

// ---- recording ------------------------------------------------------------------------------------------------------

Graph::Graph(Gpu& gpu) : gpu_(gpu), stream_(gpu.driver(), gpu.health()) { gpu.rooms().add_graph(); }

Graph::~Graph() {
  cancel();
  gpu_.health().note(gpu_.driver().synchronize(gpu_.compute().handle()), "letting go of a graph");
  drop_exec();
  for (PinnedPool::Block block : kept_.pinned) gpu_.pinned().give(block);
  gpu_.rooms().drop_graph();
}

void Graph::begin() {
  gpu_.begin();
  RG_ASSERT(!recording_);
  gpu_.health().check(gpu_.driver().begin_capture(stream_.handle()), "recording launches");
  recording_ = std::make_unique<Recording>(gpu_, stream_, recorded_, kept_);
}

void Graph::end() {
  recording_.reset();
  GraphHandle graph = nullptr;
  Status status = gpu_.driver().end_capture(stream_.handle(), &graph);
  const char* const what = status == kSuccess ? "making a graph" : "recording launches";
  if (status == kSuccess) status = make(graph);
  if (graph) gpu_.driver().destroy_graph(graph);
  if (status == kSuccess) std::swap(kept_, recorded_);
  let_go(recorded_);
  gpu_.health().check(status, what);
}

void Graph::cancel() noexcept {
  if (!recording_) return;
  recording_.reset();
  GraphHandle graph = nullptr;
  gpu_.driver().end_capture(stream_.handle(), &graph);  // aborted: its error does not matter
  if (graph) gpu_.driver().destroy_graph(graph);
  let_go(recorded_);
}

Status Graph::make(GraphHandle graph) {
  if (exec_ && gpu_.driver().update(exec_, graph) == kSuccess) return kSuccess;
  drop_exec();
  return gpu_.driver().instantiate(graph, &exec_);
}

// It may still be running.
void Graph::drop_exec() noexcept {
  if (!exec_) return;
  gpu_.health().note(gpu_.driver().synchronize(gpu_.compute().handle()), "letting go of a graph");
  gpu_.driver().destroy_exec(exec_);
  exec_ = nullptr;
}

// Running launches of the graph may read it.
void Graph::let_go(Recording::Kept& kept) noexcept {
  for (PinnedPool::Block block : kept.pinned) try {
      gpu_.pinned().give(block, gpu_.compute());
    } catch (const std::exception&) {  // the device is lost: the memory is not needed any more
    }
  kept = {};
}

void Graph::start() {
  gpu_.begin();
  RG_ASSERT(exec_ && !recording_);
  if (kept_.numbers) kept_.numbers->renew();
  gpu_.health().check(gpu_.driver().launch(exec_, gpu_.compute().handle()), "starting a graph");
  gpu_.faults().note_again();
  gpu_.launched("a graph");
}

}  // namespace retrograd::cuda
