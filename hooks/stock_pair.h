// Common code of the stock pairs (hooks/stock.h). One class, Stock, decides what is packed; Formats say how. A Format
// has
//
//   Packed                             what is kept instead of a tensor; copyable
//   bool takes(const Tensor&) const    whether that gains something; else the tensor is kept as it is
//   Packed pack(const Tensor&) const
//   Tensor unpack(const Packed&) const
//
// A Format with a `name` whose Packed has parts() (see visit_payload) makes a traceable pair.
//
// PrefetchedStock is a Stock whose values come from elsewhere: its Packed is a std::shared_ptr to an object with
// bytes() and drop(), and its Format has begin(payload), all with the meanings of hooks/prefetcher.h. A null Packed
// means that the tensor stays where it is.
#pragma once

#include <any>
#include <string>
#include <utility>

#include "engine/saved_tensor_hooks.h"
#include "hooks/kept_memory.h"
#include "hooks/prefetcher.h"

namespace retrograd::inline v0 {

/// Whether packing a tensor in another form gains something: floating ones with enough elements, each in memory of its
/// own.
bool is_worth_packing(const Tensor& tensor);
/// Whether a copy in host memory is worth the transfer: not for a few bytes of a device.
bool is_worth_moving(const Tensor& tensor);

template <class Format>
class Stock : public SavedTensorHooks {
 public:
  Stock(Format format, const Tensors& keep) : format_(std::move(format)), kept_(keep) {
    is_pure = true;
    if constexpr (requires { Format::name; }) {
      traceable = true;
      cache_key = Format::name;
    }
  }

  std::any pack(const Tensor& tensor) final {
    if (!format_.takes(tensor) || keeps(tensor)) return std::any(tensor);
    typename Format::Packed packed = format_.pack(tensor);
    if constexpr (requires { packed.get(); })
      if (!packed) return std::any(tensor);
    return std::any(std::move(packed));
  }
  bool keeps(const Tensor& tensor) const final { return kept_.holds(tensor); }
  void visit(std::any& payload, PayloadVisitor& visitor) final {
    Tensor* const as_it_is = std::any_cast<Tensor>(&payload);
    visitor.constant(as_it_is != nullptr);
    if (as_it_is)
      visit_payload(*as_it_is, visitor);
    else
      visit_payload(std::any_cast<typename Format::Packed&>(payload), visitor);
  }
  Tensor unpack(const std::any& payload) final {
    if (const Tensor* as_it_is = std::any_cast<Tensor>(&payload)) return *as_it_is;
    return format_.unpack(std::any_cast<const typename Format::Packed&>(payload));
  }

 protected:
  const Format format_;

 private:
  const KeptMemory kept_;
};

template <class Format>
class PrefetchedStock final : public Stock<Format>, private Prefetcher {
 public:
  PrefetchedStock(Format format, const Tensors& keep, PrefetchOptions options)
      : Stock<Format>(std::move(format), keep), options_(options) {}

  Prefetcher* prefetcher() override { return this; }

 private:
  // None: the tensor is kept as it is.
  static typename Format::Packed::element_type* packed(const std::any& payload) {
    const auto* found = std::any_cast<typename Format::Packed>(&payload);
    return found ? found->get() : nullptr;
  }
  PrefetchOptions options() const override { return options_; }
  int64_t bytes(const std::any& payload) const override {
    const auto* found = packed(payload);
    return found ? found->bytes() : 0;
  }
  void begin(const std::any& payload) override {
    if (auto* found = packed(payload)) this->format_.begin(*found);
  }
  void drop(const std::any& payload) noexcept override {
    if (auto* found = packed(payload)) found->drop();
  }

  const PrefetchOptions options_;
};

template <class Format>
RefPtr<SavedTensorHooks> make_stock(Format format, const Tensors& keep) {
  return RefPtr<SavedTensorHooks>::adopt(new Stock<Format>(std::move(format), keep));
}
template <class Format>
RefPtr<SavedTensorHooks> make_stock(Format format, const Tensors& keep, PrefetchOptions options) {
  return RefPtr<SavedTensorHooks>::adopt(new PrefetchedStock<Format>(std::move(format), keep, options));
}

}  // namespace retrograd
