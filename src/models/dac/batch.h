// The rows that one pass works on, and where each sequence keeps its state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "models/dac/state.h"
#include "models/dac/tap.h"
#include "ops/context.h"
#include "ops/conv1d.h"
#include "ops/device_state.h"
#include "ops/linear.h"
#include "ops/packed_matrix.h"
#include "ops/transfer.h"

namespace shoal::dac {

// Rows of several sequences at one rate (samples, latents, frames). Passed to every layer, together with a
// tensor of that many rows. The arrays live in the host memory of the enclosing scope.
struct Batch {
  ops::Context* ctx = nullptr;
  const StateSlots* state = nullptr;
  const Tap* tap = nullptr;
  ops::RaggedRows rows;
  std::span<const int64_t> starts;  // [sequences] position of each one's first row in its clip
  std::span<const int32_t> slots;   // [sequences] the slot of each sequence's state
  // The offsets, divided by `rate`, and the slots, for kernels: made once per pass, at the lowest rate.
  TensorView device_offsets, device_slots;
  int64_t rate = 1;

  int sequences() const { return rows.sequences(); }
  Workspace& workspace() const { return *ctx->workspace; }
  // f32 [rows, channels], uninitialised.
  TensorView alloc(int64_t channels) const { return workspace().alloc(DType::f32, {rows.rows(), channels}); }
  // The input of a product with `weight`: [rows, depth], uninitialised.
  TensorView alloc_input(const ops::PackedMatrix& weight) const {
    return workspace().alloc(ops::product_input(*ctx, weight), {rows.rows(), weight.depth});
  }
  // The same stretch of time at a rate `factor` times as high.
  Batch at_rate(int64_t factor) const;
  // Rows [begin, end) of the whole batch: the end of one sequence, perhaps whole others, the start of
  // another. The tables that kernels read must be built again.
  Batch piece(int64_t begin, int64_t end) const;
  // The row behind the last one of a piece that begins with row `begin` and has at most `most_of_one` rows of
  // a sequence.
  int64_t end_of_piece(int64_t begin, int64_t most_of_one) const;
  // Including the tables for kernels, in the workspace of the enclosing scope.
  Batch on_device() const;
  // The same where a device reads them and they are not there yet.
  Batch with_tables() const;
  // The rows and the state of a convolution, in the form of its op.
  ops::ConvRows conv_rows() const { return {rows, device_offsets, device_slots, rate}; }
  ops::ConvHistory history(const History& kept) const;
  void tell(std::string_view stage, TensorView x) const {
    if (tap) (*tap)(stage, ops::to_host(*ctx, x));
  }
};

// An uninitialised array that the host writes.
template <typename T>
std::span<T> host_array(const ops::Context& ctx, int64_t count) {
  return ctx.host_memory().array<T>(count);
}

// How many rows a stage processes at once when each row touches `bytes_per_row` of activations: few enough
// that these stay in the second-level caches (1 MiB per worker), but enough that the arithmetic on a weight
// outweighs fetching it. A device that computes by itself takes `device_rows` at once.
inline int64_t rows_at_once(const ops::Context& ctx, int64_t bytes_per_row, int64_t device_rows) {
  constexpr int64_t kFewest = 64, kBytesPerWorker = int64_t{1} << 20;
  if (!ops::works_in_caches(ctx.device)) return device_rows;
  return std::max(kFewest, ctx.team->size() * kBytesPerWorker / bytes_per_row);
}

// Calls body(piece, begin, end) over consecutive pieces, each in its own scope of the workspace and the
// host's memory. end_of(begin) is where the piece that begins there ends. Where a sequence is cut does not
// matter: every layer carries its state over the cut. A batch that needs no cut is its own piece.
template <typename EndOf, typename Body>
void for_each_piece_until(const Batch& batch, EndOf&& end_of, Body&& body) {
  const int64_t rows = batch.rows.rows();
  for (int64_t begin = 0, end; begin < rows; begin = end) {
    end = end_of(begin);
    const Workspace::Scope scope(batch.workspace()), host_scope(batch.ctx->host_memory());
    body(end - begin == rows ? batch : batch.piece(begin, end), begin, end);
  }
}

// The same over pieces of at most max_rows rows.
template <typename Body>
void for_each_piece(const Batch& batch, int64_t max_rows, Body&& body) {
  const int64_t rows = batch.rows.rows();
  for_each_piece_until(batch, [&](int64_t begin) { return begin + std::min(rows - begin, max_rows); }, body);
}

}  // namespace shoal::dac
