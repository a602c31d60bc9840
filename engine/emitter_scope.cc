// The emitters that a thread has open, the innermost first; see engine/emitter.h. A block removes itself from any
// position in the list: a layer that was opened in it and outlives it is then above what was outside of the block. A
// layer leaves the list only at the front, since emitters above it may still emit into it.
#include "engine/recording.h"

namespace retrograd::inline v0 {
namespace {

using detail::OpenEmitter;

constinit thread_local OpenEmitter* innermost = nullptr;

void make_current() noexcept { detail::current_emitter = innermost ? innermost->emitter : nullptr; }

void drop_innermost() noexcept {
  const RefPtr<Emitter::Layer> layer = RefPtr<Emitter::Layer>::adopt(innermost->layer);
  innermost = innermost->outer;
  make_current();
}

void drop_ended_layers() noexcept {
  while (innermost && innermost->layer && !innermost->layer->is_open()) drop_innermost();
}

void drop_layers() noexcept {
  while (innermost && innermost->layer) drop_innermost();
}

constinit thread_local detail::AtEnd drop_at_end{&drop_layers};

}  // namespace

constinit thread_local int SubstitutionScope::open_ = 0;

FunctionRecording* innermost_recorded_function() {
  for (const OpenEmitter* open = innermost; open; open = open->outer)
    if (Recording* recording = open->emitter->recording())
      if (FunctionRecording* function = recording->of_function()) return function;
  return nullptr;
}

void OpenEmitter::enter() noexcept {
  outer = innermost;
  innermost = this;
  make_current();
}

void OpenEmitter::leave() noexcept {
  OpenEmitter* inner = nullptr;
  for (OpenEmitter* open = innermost; open != this; open = open->outer) inner = open;
  (inner ? inner->outer : innermost) = outer;
  if (inner && inner->layer) inner->layer->stand_on(outer ? *outer->emitter : eager_emitter());
  drop_ended_layers();
  make_current();
}

void Emitter::Layer::open() noexcept {
  add_ref();
  open_.enter();
  detail::at_thread_end(drop_at_end);
}

void Emitter::Layer::end() noexcept {
  is_open_.store(false, std::memory_order_release);
  drop_ended_layers();
}

int Emitter::Layer::count() noexcept {
  int layers = 0;
  for (const OpenEmitter* open = innermost; open; open = open->outer) layers += open->layer != nullptr;
  return layers;
}

}  // namespace retrograd
