#include "models/dac/decode_memory.h"

#include <atomic>

namespace shoal::dac {
namespace {

int64_t input_bytes(const DecodeSizes& sizes) {
  return BlockArrays::bytes_for(sizes.streams + 1) + BlockArrays::bytes_for(sizes.streams) +
         2 * BlockArrays::bytes_for(sizes.frames) + BlockArrays::bytes_for(sizes.frames * sizes.codebooks) +
         BlockArrays::bytes_for(sizes.streams * sizes.table_pages);
}

int64_t sample_bytes(const DecodeSizes& sizes) {
  return sizes.frames * sizes.samples_per_frame * static_cast<int64_t>(sizeof(float));
}

int64_t next_serial() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

}  // namespace

DecodeMemory::DecodeMemory(ops::Context& ctx, const DecodeSizes& sizes)
    : inputs_(ctx, input_bytes(sizes)), samples_(ctx, sample_bytes(sizes)), serial_(next_serial()) {}

int64_t DecodeMemory::bytes_of(const DecodeSizes& sizes) { return input_bytes(sizes) + sample_bytes(sizes); }

BlockArrays::Array BlockArrays::add(Shape shape) {
  const TensorView device = block_.device(bytes_, DType::i32, shape);
  int32_t* const host = reinterpret_cast<int32_t*>(block_.host() + bytes_);
  bytes_ += bytes_for(shape.elements());
  return {{host, static_cast<size_t>(shape.elements())}, device};
}

}  // namespace shoal::dac
