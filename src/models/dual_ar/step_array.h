// Host arrays that live for one step, in the step's workspace.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "tensor/workspace.h"

namespace shoal::dual_ar {

// `count` values, each T{}; given back with the enclosing Workspace::Scope.
template <typename T>
std::span<T> step_array(Workspace& workspace, int64_t count) {
  static_assert(std::is_trivially_destructible_v<T>);
  const TensorView memory = workspace.alloc(DType::u8, {count * static_cast<int64_t>(sizeof(T))});
  T* first = static_cast<T*>(memory.data());
  std::uninitialized_value_construct_n(first, count);
  return {first, static_cast<size_t>(count)};
}

}  // namespace shoal::dual_ar
