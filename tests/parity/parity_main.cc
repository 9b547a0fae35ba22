// parity_tests --fixtures DIR: does this build compute what the official code computed? DIR is any folder in
// the form of tests/data/fish/set_a (S1 layout: language model and codec), set_s2 (S2 layout: language
// model) or tests/data/kokoro/set_a.
#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/parity/codec_parity.h"
#include "tests/parity/fish_goldens.h"
#include "tests/parity/kokoro_parity.h"
#include "tests/parity/lm_parity.h"
#include "tests/parity/sampler_parity.h"
#include "tests/parity/tally.h"
#include "tests/parity/text_parity.h"

namespace {

namespace parity = shoal::parity;

struct Check {
  const char* name;
  void (*run)(const std::string& dir);
};
constexpr Check kFish[] = {{"Tokenizer", parity::check_tokenizer},
                           {"Prompts", parity::check_prompts},
                           {"Splits", parity::check_splits},
                           {"Samplers", parity::check_samplers},
                           {"LanguageModelF32", parity::check_lm_values},
                           {"LanguageModelStreams", parity::check_lm_streams},
                           {"LanguageModelBf16", parity::check_lm_bf16}};
constexpr Check kCodec[] = {{"CodecDecoding", parity::check_codec_decoding},
                            {"CodecEncoding", parity::check_codec_encoding},
                            {"CodecBf16", parity::check_codec_bf16},
                            {"CodecStreaming", parity::check_codec_streaming}};
constexpr Check kKokoro[] = {
    {"KokoroInputs", parity::check_kokoro_inputs}, {"KokoroStages", parity::check_kokoro_stages},
    {"KokoroSource", parity::check_kokoro_source}, {"KokoroGenerator", parity::check_kokoro_generator},
    {"KokoroSpeech", parity::check_kokoro_speech}, {"KokoroBf16", parity::check_kokoro_bf16}};

int usage() {
  std::fputs(
      "usage: parity_tests --fixtures DIR [--fixtures DIR ...] [googletest options]\n"
      "DIR holds a checkpoint with its goldens: lm_goldens.* and dac_goldens.*, s2_goldens.*, or "
      "manifest.json and\n"
      "goldens/*.safetensors\n",
      stderr);
  return 2;
}

class CheckOfFolder : public testing::Test {
 public:
  CheckOfFolder(std::string dir, const Check& check) : dir_(std::move(dir)), check_(check) {}
  void TestBody() override { check_.run(dir_); }

 private:
  std::string dir_;
  Check check_;
};

template <typename Checks>
void add(const std::string& dir, const Checks& checks) {
  for (const Check& check : checks)
    testing::RegisterTest(check.name, dir.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [dir, check]() -> testing::Test* { return new CheckOfFolder(dir, check); });
}

bool add_folder(const std::string& dir) {
  const bool fish = parity::FishGoldens::lies_in(dir);
  const bool codec = shoal::is_regular_file(dir + "/dac_goldens.safetensors");
  const bool kokoro =
      shoal::is_regular_file(dir + "/kokoro-v1_0.pth") || shoal::is_regular_file(dir + "/manifest.json");
  if (fish) add(dir, kFish);
  if (codec) add(dir, kCodec);
  if (kokoro) add(dir, kKokoro);
  if (!fish && !codec && !kokoro) std::fprintf(stderr, "parity_tests: no goldens in %s\n", dir.c_str());
  return fish || codec || kokoro;
}

void print_summary(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) parity::print_total(folder);
  const std::vector<std::string> unread = parity::unread_goldens();
  std::printf("%zu goldens belong to no check that ran\n", unread.size());
  for (const std::string& name : unread) std::printf("  %s\n", name.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::vector<std::string> folders;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) != "--fixtures" || i + 1 == argc) return usage();
    folders.emplace_back(argv[++i]);
  }
  if (folders.empty()) return usage();
  for (const std::string& folder : folders) {
    if (!add_folder(folder)) return 2;
  }
  const int result = RUN_ALL_TESTS();
  print_summary(folders);
  return result;
}
