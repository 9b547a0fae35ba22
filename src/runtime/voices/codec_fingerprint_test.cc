#include "runtime/voices/codec_fingerprint.h"

#include <functional>
#include <gmock/gmock.h>
#include <set>

#include "runtime/voices/voices_testing.h"

namespace shoal::runtime {
namespace {

using CodecFingerprint = InTemporaryFolder;

TEST_F(CodecFingerprint, DependsOnFileConfigurationAndDtype) {
  const dac::Config config = dac::Config::published();
  const std::string file = path("codec.pth");
  std::set<std::string> seen;
  const auto expect_new = [&](const dac::Config& c, DType dtype) {
    const std::string fingerprint = codec_fingerprint(file, c, dtype);
    EXPECT_THAT(fingerprint, testing::MatchesRegex("[0-9a-f]{32}"));
    EXPECT_EQ(codec_fingerprint(file, c, dtype), fingerprint);
    EXPECT_TRUE(seen.insert(fingerprint).second);
  };
  std::string bytes(3'000'001, 'x');  // more than the blocks cover
  write(file, bytes);
  expect_new(config, DType::f32);
  expect_new(config, DType::bf16);
  for (const size_t at : {size_t{0}, size_t{4095}, bytes.size() - 1, bytes.size() - 4096}) {
    std::string changed = bytes;
    changed[at] = 'y';
    write(file, changed);
    expect_new(config, DType::f32);
  }
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{4096}, size_t{4097}, bytes.size() - 1, bytes.size() + 1}) {
    write(file, std::string(size, 'x'));
    expect_new(config, DType::f32);
  }
  write(file, bytes);
  const std::vector<std::function<void(dac::Config&)>> changes = {
      [](auto& c) { ++c.sample_rate_hz; }, [](auto& c) { c.encoder_rates.push_back(2); },
      [](auto& c) { ++c.q_window; },       [](auto& c) { c.rope_base += 1e-9; },
      [](auto& c) { c.norm_eps *= 2; },    [](auto& c) { ++c.enc_window; },
      [](auto& c) { --c.q_dim; }};
  for (const auto& change : changes) {
    dac::Config changed = config;
    change(changed);
    expect_new(changed, DType::f32);
  }
}

TEST_F(CodecFingerprint, EveryByteOfASmallFileCounts) {
  std::string bytes(256 * 4096, 'x');  // as many blocks as are read
  const dac::Config config = dac::Config::published();
  write(path("codec"), bytes);
  const std::string fingerprint = codec_fingerprint(path("codec"), config, DType::f32);
  for (size_t at = 0; at < bytes.size(); at += 40'961) {
    bytes[at] = 'y';
    write(path("codec"), bytes);
    EXPECT_NE(codec_fingerprint(path("codec"), config, DType::f32), fingerprint) << at;
    bytes[at] = 'x';
  }
}

TEST_F(CodecFingerprint, AMissingFileIsReported) {
  const dac::Config config = dac::Config::published();
  EXPECT_EQ(code_of([&] { codec_fingerprint(path("none"), config, DType::f32); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { codec_fingerprint(dir_, config, DType::f32); }), ErrorCode::io);
}

}  // namespace
}  // namespace shoal::runtime
