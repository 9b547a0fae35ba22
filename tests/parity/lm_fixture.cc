#include "tests/parity/lm_fixture.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "weights/name_maps.h"

namespace shoal::parity {
namespace {

// As find_model_files, which also wants a codec: a fixture may have none.
std::string weights_of(const std::string& dir) {
  for (const char* name : {"/model.safetensors.index.json", "/model.safetensors", "/model.pth"})
    if (is_regular_file(dir + name)) return dir + name;
  fail(ErrorCode::not_found, dir, ": no model.safetensors.index.json, model.safetensors or model.pth");
}

}  // namespace

double distance(std::span<const float> a, std::span<const float> b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    norm += double{b[i]} * b[i];
  }
  return std::sqrt(difference / std::max(norm, 1e-60));
}

LmFixture::LmFixture(FishGoldens goldens, const std::string& checkpoint, const std::string& check)
    : goldens_(std::move(goldens)),
      checkpoint_(weights::Checkpoint::open(checkpoint)),
      config_(dual_ar::Config::read(dir() + "/config.json")),
      tally_(dir(), check) {
  weights::normalise_dual_ar_names(checkpoint_);
  if (is_s1() != (config_.family == dual_ar::Family::s1))
    fail(ErrorCode::invalid_argument, dir(), ": config.json is not of the layout of ",
         goldens_.tensors.path());
  take_token_ids();
  if (cases().empty())
    fail(ErrorCode::corrupt_file, goldens_.document.where(), " cases: no case, expected one");
}

void LmFixture::take_token_ids() {
  if (const text::Tokenizer* tokenizer = goldens_.tokenizer.get()) {
    config_.semantic_begin = tokenizer->semantic_begin();
    config_.semantic_end = tokenizer->semantic_end();
    config_.im_end = tokenizer->im_end();
  }
  if (config_.im_end < 0)
    fail(ErrorCode::not_found, dir(), ": no tokenizer.tiktoken or tokenizer.json gives the token ids");
  dual_ar::check_token_ids(config_);
}

LmFixture LmFixture::open(const std::string& dir, const std::string& check) {
  return {FishGoldens::open(dir), weights_of(dir), check};
}

std::vector<float> LmFixture::floats(const std::string& name, const std::string& golden) const {
  return goldens_.tensors.floats(full(name, golden));
}

std::vector<int32_t> LmFixture::columns(const std::string& name, const std::string& golden) const {
  return goldens_.tensors.columns(full(name, golden), config_.columns());
}

std::vector<int32_t> LmFixture::codes(const std::string& name, const std::string& golden) const {
  std::vector<int32_t> codes = goldens_.tensors.integers(full(name, golden));
  if (static_cast<int64_t>(codes.size()) != config_.num_codebooks)
    goldens_.tensors.refuse(full(name, golden), concat("expected ", config_.num_codebooks, " codes"));
  return codes;
}

std::vector<float> LmFixture::fast_logits(const std::string& name, const std::string& golden) const {
  const std::vector<float> all = floats(name, golden);
  const auto books = static_cast<size_t>(config_.num_codebooks);
  const auto size = static_cast<size_t>(config_.codebook_size);
  if (all.size() % (books * size) != 0)
    goldens_.tensors.refuse(full(name, golden), concat("expected [..., ", books, ", ", size, "]"));
  std::vector<float> out;
  for (size_t row = 0; row < all.size() / size; ++row) {
    if (row % books == 0) continue;  // the slow transformer's head draws codebook 0
    const auto logits = std::span(all).subspan(row * size, static_cast<size_t>(config_.residual_codes()));
    out.insert(out.end(), logits.begin(), logits.end());
  }
  return out;
}

void LmFixture::expect_close(const std::string& name, const std::string& golden, std::span<const float> ours,
                             double bound, const std::optional<std::vector<float>>& values) {
  const std::string full_name = full(name, golden);
  if (!has(name, golden)) {
    ADD_FAILURE() << dir() << ": no golden " << full_name;
    return;
  }
  const std::vector<float> expected = values ? *values : floats(name, golden);
  tally_.tried(name, golden, static_cast<int64_t>(expected.size()));
  const TensorView stored = goldens_.tensors.get(full_name);
  const int rank_of_rows = values ? 3 : 2;  // of fast logits a row is a frame, [N, codebook_size]
  const size_t rows = stored.rank() < rank_of_rows ? 1 : static_cast<size_t>(stored.dim(0));
  const size_t width = expected.size() / rows;
  ASSERT_EQ(ours.size() % width, 0u) << full_name;
  ASSERT_GE(ours.size(), expected.size()) << full_name;
  EXPECT_LE(distance(keep_rows(ours, width, rows), expected), bound) << full_name;
}

bool LmFixture::expect_equal(const std::string& name, const std::string& golden,
                             std::span<const int32_t> ours) {
  const std::vector<int32_t> expected = columns(name, golden);
  const bool same = std::ranges::equal(ours, expected);
  EXPECT_TRUE(same) << full(name, golden) << ": ours "
                    << testing::PrintToString(std::vector(ours.begin(), ours.end())) << ", golden "
                    << testing::PrintToString(expected);
  tally_.tried(name, golden, static_cast<int64_t>(expected.size()));
  return same;
}

}  // namespace shoal::parity
