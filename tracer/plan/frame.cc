// See tracer/plan/frame.h.
#include "tracer/plan/frame.h"

#include "tracer/plan/recordings.h"

namespace retrograd::inline v0 {

Frame::Frame(const Program& program) : patched(program.attrs.initial()) {
  const RegisterLayout& layout = program.layout;
  for (size_t r = 0; r < layout.count(); ++r) {
    const TensorType& t = layout.type(r);
    RefPtr<TensorImpl> cell = TensorImpl::make();
    cell->set_type(t.dtype, t.device, t.shape);
    contiguous_strides(t.shape, cell->mutable_strides());
    own.push_back(std::move(cell));
  }
  at.resize(own.size());
  foreign.resize(own.size());
  for (size_t r = 0; r < layout.in_arena(); ++r) {
    own[r]->set_storage(Storage::wrap(nullptr, bytes_of(layout.type(r)), nullptr, nullptr));
    at[r] = own[r].get();
  }
}

Frame::~Frame() = default;

void Frame::take_arena(const Program& program) {
  if (program.layout.arena_bytes == 0 || arena) return;
  arena = program.executor.allocate_memory(program.layout.arena_bytes);
  if (arena->data() == arena_data) return;
  for (size_t r = 0; r < program.layout.in_arena(); ++r) {
    Storage& memory = *own[r]->storage();
    memory.rewrap(static_cast<std::byte*>(arena->data()) + program.layout.arena_offsets[r], memory.nbytes(), nullptr,
                  nullptr);
  }
  arena_data = arena->data();
}

void Frame::clear(size_t in_arena) {
  if (!recordings) arena.reset();
  for (size_t i = in_arena; i < at.size(); ++i) {
    at[i] = nullptr;
    foreign[i].reset();
    if (own[i]->storage()) own[i]->set_storage({});
  }
}

}  // namespace retrograd
