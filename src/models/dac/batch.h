// The rows that one pass works on, and where each sequence keeps its state.
#pragma once

#include <algorithm>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>

#include "models/dac/state.h"
#include "models/dac/tap.h"
#include "ops/context.h"
#include "ops/conv1d.h"

namespace shoal::dac {

// Rows of several sequences at one rate (samples, latents, frames). Passed to every layer, together with a
// tensor of that many rows. The arrays live in the workspace of the enclosing scope.
struct Batch {
  ops::Context* ctx = nullptr;
  const StateSlots* state = nullptr;
  const Tap* tap = nullptr;
  ops::RaggedRows rows;
  std::span<const int64_t> starts;  // [sequences] position of each one's first row in its clip
  std::span<const int32_t> slots;   // [sequences] where its state lies

  int sequences() const { return rows.sequences(); }
  Workspace& workspace() const { return *ctx->workspace; }
  // f32 [rows, channels], uninitialised.
  TensorView alloc(int64_t channels) const { return workspace().alloc(DType::f32, {rows.rows(), channels}); }
  // The same stretch of time at a rate `factor` times as high.
  Batch at_rate(int64_t factor) const;
  // Rows [begin, end) of the whole batch: the end of one sequence, perhaps others, the start of another.
  Batch piece(int64_t begin, int64_t end) const;
  // The state of a convolution, as its op wants it: one view per sequence.
  std::span<const TensorView> histories(const History& history) const;
  void tell(std::string_view stage, TensorView x) const {
    if (tap) (*tap)(stage, x);
  }
};

// An uninitialised array for the host's side of an op call. The one place to change for a device whose
// workspace the host cannot write.
template <typename T>
std::span<T> host_array(Workspace& workspace, int64_t count) {
  static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 64);
  void* data = workspace.alloc(DType::u8, {count * static_cast<int64_t>(sizeof(T))}).data();
  T* first = static_cast<T*>(data);
  for (int64_t i = 0; i < count; ++i) new (first + i) T;
  return {first, static_cast<size_t>(count)};
}

// How many rows a stage takes on in one go when one row makes it touch `bytes_per_row` of activations: so
// many that these stay in the second-level caches (1 MiB for each worker), but no fewer than it takes for the
// arithmetic on a weight to outweigh fetching it.
inline int64_t rows_in_cache(const ops::Context& ctx, int64_t bytes_per_row) {
  constexpr int64_t kFewest = 64, kBytesPerWorker = int64_t{1} << 20;
  return std::max(kFewest, ctx.team->size() * kBytesPerWorker / bytes_per_row);
}

// Calls body(piece, begin, end) over consecutive pieces of at most max_rows rows, each in a workspace scope
// of its own. Where a sequence is cut does not matter: every layer carries its state over the cut.
template <typename Body>
void for_each_piece(const Batch& batch, int64_t max_rows, Body&& body) {
  const int64_t rows = batch.rows.rows();
  for (int64_t begin = 0; begin < rows; begin += max_rows) {
    const int64_t end = std::min(rows, begin + max_rows);
    const Workspace::Scope scope(batch.workspace());
    body(batch.piece(begin, end), begin, end);
  }
}

}  // namespace shoal::dac
