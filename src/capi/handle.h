// What the handles of the interface point to.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace shoal::capi {

// Marks the memory of a handle, so that one of another type is refused, and, as a rule, one that was freed.
enum class Kind : uint32_t {
  none = 0,
  buffer = 0x53480001,
  config,
  request,
  engine,
  speech,
  mailbox,
  batch,
  item,
  voices,
  encoder,
};

class Handle {
 public:
  explicit Handle(Kind kind) : kind_(kind) {}
  ~Handle() { kind_.store(Kind::none); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  Kind kind() const { return kind_.load(std::memory_order_relaxed); }

 private:
  std::atomic<Kind> kind_;
};

// The handle, if it is one of its type. Throws Error(invalid_argument).
template <typename T>
T& held(T* handle, const char* name) {
  if (!handle) fail(ErrorCode::invalid_argument, name, ": expected a handle, got NULL");
  if (handle->kind() != T::kKind)
    fail(ErrorCode::invalid_argument, name, ": expected a handle of this type, got another or a freed one");
  return *handle;
}

}  // namespace shoal::capi
