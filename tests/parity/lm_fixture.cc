#include "tests/parity/lm_fixture.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>

#include "base/file.h"
#include "weights/convert.h"
#include "weights/name_maps.h"

namespace shoal::parity {
namespace {

constexpr const char* kGoldens[] = {"/lm_goldens", "/s2_goldens"};

std::string goldens_of(const std::string& dir) {
  for (const char* name : kGoldens)
    if (is_regular_file(dir + name + ".json")) return dir + name;
  fail(ErrorCode::not_found, dir, ": neither lm_goldens.json nor s2_goldens.json");
}

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

LmFixture::LmFixture(std::string dir, const std::string& goldens, const std::string& checkpoint)
    : dir_(std::move(dir)),
      goldens_(Json::read_file(goldens + ".json", int64_t{64} << 20)),
      values_(weights::Checkpoint::open(goldens + ".safetensors")),
      checkpoint_(weights::Checkpoint::open(checkpoint)),
      config_(dual_ar::Config::read(dir_ + "/config.json")) {
  weights::normalise_dual_ar_names(checkpoint_);
  const auto id = [](const Json& value) { return static_cast<int32_t>(value.as_integer()); };
  config_.semantic_begin = id(goldens_.at("semantic_begin_id"));
  config_.semantic_end = id(goldens_.at("semantic_end_id"));
  config_.im_end = id(goldens_.at("special_ids").at("<|im_end|>"));
  if (cases().empty()) fail(ErrorCode::corrupt_file, goldens_.at("cases").where(), ": no case, expected one");
}

LmFixture LmFixture::open(const std::string& dir) { return {dir, goldens_of(dir), weights_of(dir)}; }

bool LmFixture::lies_in(const std::string& dir) {
  return std::ranges::any_of(kGoldens, [&](const char* name) {
    return is_regular_file(dir + name + ".json") || is_regular_file(dir + name + ".safetensors");
  });
}

TensorView LmFixture::golden(const std::string& name) const {
  const TensorView* view = values_.find(prefix() + name);
  if (!view) fail(ErrorCode::not_found, dir_, ": no golden ", prefix(), name);
  return *view;
}

std::vector<float> LmFixture::floats(const std::string& name) const {
  const TensorView view = golden(name);
  std::vector<float> out(static_cast<size_t>(view.elements()));
  weights::to_f32(view, out);
  return out;
}

std::vector<int32_t> LmFixture::columns(const std::string& name) const {
  const TensorView view = golden(name);
  const int64_t height = config_.columns();
  if (view.dtype() != DType::i32 || view.shape().rank() != 2 || view.dim(0) != height || view.dim(1) < 1)
    fail(ErrorCode::corrupt_file, dir_, ": golden ", prefix(), name, " is not int32 [", height,
         ", 1 or more columns]");
  std::vector<int32_t> out;
  for (int64_t column = 0; column < view.dim(1); ++column)
    for (int64_t row = 0; row < height; ++row) out.push_back(view.row<int32_t>(row)[column]);
  return out;
}

std::vector<int32_t> LmFixture::codes(const std::string& name) const {
  const TensorView view = golden(name);
  if (view.dtype() != DType::i32 || view.elements() != config_.num_codebooks)
    fail(ErrorCode::corrupt_file, dir_, ": golden ", prefix(), name, " is not int32 [", config_.num_codebooks,
         "]");
  return {view.as<int32_t>(), view.as<int32_t>() + view.elements()};
}

std::vector<float> LmFixture::fast_logits(const std::string& name) const {
  const std::vector<float> all = floats(name);
  const auto books = static_cast<size_t>(config_.num_codebooks);
  const auto size = static_cast<size_t>(config_.codebook_size);
  if (all.empty() || all.size() % (books * size) != 0)
    fail(ErrorCode::corrupt_file, dir_, ": golden ", prefix(), name, " is not [..., ", books, ", ", size,
         "]");
  std::vector<float> out;
  for (size_t row = 0; row < all.size() / size; ++row) {
    if (row % books == 0) continue;  // the slow transformer's head draws codebook 0
    const auto logits = std::span(all).subspan(row * size, static_cast<size_t>(config_.residual_codes()));
    out.insert(out.end(), logits.begin(), logits.end());
  }
  return out;
}

void LmFixture::expect_close(const std::string& name, std::span<const float> ours,
                             std::span<const float> golden, double bound) {
  ASSERT_EQ(ours.size(), golden.size()) << name;
  ASSERT_FALSE(golden.empty()) << name;
  EXPECT_LE(distance(ours, golden), bound) << name;
  compared_ += static_cast<int64_t>(golden.size());
}

void LmFixture::expect_golden(const std::string& name, std::span<const float> ours, double bound) {
  if (!has(name)) {
    ADD_FAILURE() << dir_ << ": no golden " << prefix() << name;
    return;
  }
  expect_close(name, ours, floats(name), bound);
}

bool LmFixture::expect_equal(const std::string& name, std::span<const int32_t> ours,
                             std::span<const int32_t> golden) {
  const bool same = std::ranges::equal(ours, golden);
  EXPECT_TRUE(same) << name << ": ours " << testing::PrintToString(std::vector(ours.begin(), ours.end()))
                    << ", golden " << testing::PrintToString(std::vector(golden.begin(), golden.end()));
  compared_ += static_cast<int64_t>(golden.size());
  return same;
}

void LmFixture::report(const std::string& check) const {
  EXPECT_GT(compared_, 0) << dir_ << ": " << check << " compared nothing";
  testing::Test::RecordProperty(check + "_values_compared", std::to_string(compared_));
  std::printf("%s: %s: %zu case(s), %lld values compared\n", dir_.c_str(), check.c_str(), cases().size(),
              static_cast<long long>(compared_));
}

}  // namespace shoal::parity
