#include "models/dac/decode_memory.h"

#include "ops/block_layout.h"

namespace shoal::dac {
namespace {

int64_t sample_bytes(const DecodeSizes& sizes) {
  return sizes.frames * sizes.samples_per_frame * static_cast<int64_t>(sizeof(float));
}

}  // namespace

PassInputs::Array PassInputs::Array::part(int64_t begin, int64_t end) const {
  const int64_t width = device.stride(0);
  return {host.subspan(static_cast<size_t>(begin * width), static_cast<size_t>((end - begin) * width)),
          device.slice(begin, end)};
}

PassInputs::PassInputs(const ops::StepBlock* block, const DecodeSizes& sizes) {
  ops::BlockLayout layout(block);
  const auto add = [&](const Shape& shape) {
    Array array;
    array.host = layout.next<int32_t>(shape.elements(), DType::i32, shape, &array.device);
    return array;
  };
  offsets = add({sizes.streams + 1});
  slots = add({sizes.streams});
  positions = add({sizes.frames});
  owners = add({sizes.frames});
  table_rows = add({sizes.frames, sizes.codebooks});
  plan_offsets = add({sizes.plan_sequences + sizes.plans});
  page_table = add({sizes.plan_sequences, sizes.table_pages});
  bytes = layout.bytes();
}

DecodeMemory::DecodeMemory(ops::Context& ctx, const DecodeSizes& sizes)
    : inputs_(ctx, PassInputs(nullptr, sizes).bytes),
      samples_(ctx, sample_bytes(sizes)),
      serial_(ops::new_step_serial()) {}

int64_t DecodeMemory::bytes_of(const DecodeSizes& sizes) {
  return PassInputs(nullptr, sizes).bytes + sample_bytes(sizes);
}

}  // namespace shoal::dac
