// parity_tests --fixtures DIR: does this build compute what the official code computed? DIR is any folder in
// the form of tests/data/fish/set_a (S1 layout: language model and codec), set_s2 (S2 layout: language
// model) or tests/data/kokoro/set_a.
#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/parity/codec_parity.h"
#include "tests/parity/kokoro_parity.h"
#include "tests/parity/lm_parity.h"

namespace {

int usage() {
  std::fputs(
      "usage: parity_tests --fixtures DIR [--fixtures DIR ...] [googletest options]\n"
      "DIR holds a checkpoint with its goldens: lm_goldens.* and dac_goldens.*, s2_goldens.*, or "
      "manifest.json and\n"
      "goldens/*.safetensors\n",
      stderr);
  return 2;
}

template <typename Check>
void add(const std::string& dir, const char* name, Check check) {
  struct Case : testing::Test {
    Case(std::string folder, Check body) : dir(std::move(folder)), check(std::move(body)) {}
    void TestBody() override { check(dir); }
    std::string dir;
    Check check;
  };
  testing::RegisterTest(name, dir.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                        [dir, check]() -> testing::Test* { return new Case(dir, check); });
}

bool add_folder(const std::string& dir) {
  const bool language_model = shoal::parity::is_lm_fixture(dir);
  const bool codec = shoal::is_regular_file(dir + "/dac_goldens.safetensors");
  if (language_model) add(dir, "LanguageModel", shoal::parity::check_lm_fixture);
  if (codec) add(dir, "Codec", shoal::parity::check_codec_fixture);
  const bool kokoro = shoal::is_regular_file(dir + "/kokoro-v1_0.pth");
  if (kokoro) add(dir, "Kokoro", shoal::parity::check_kokoro_fixture);
  if (!language_model && !codec && !kokoro)
    std::fprintf(stderr, "parity_tests: no goldens in %s\n", dir.c_str());
  return language_model || codec || kokoro;
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
  return RUN_ALL_TESTS();
}
