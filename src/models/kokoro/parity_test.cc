// The official code's values on the fixture in the tree.
#include <gtest/gtest.h>
#include <string>

#include "tests/parity/kokoro_parity.h"

namespace shoal::parity {
namespace {

const std::string kFixture = SHOAL_SOURCE_DIR "/tests/data/kokoro/set_a";

TEST(KokoroParity, PhonemesAndVoice) { check_kokoro_inputs(kFixture); }
TEST(KokoroParity, Stages) { check_kokoro_stages(kFixture); }
TEST(KokoroParity, Source) { check_kokoro_source(kFixture); }
TEST(KokoroParity, Generator) { check_kokoro_generator(kFixture); }
TEST(KokoroParity, Speech) { check_kokoro_speech(kFixture); }
TEST(KokoroParity, Bfloat16) { check_kokoro_bf16(kFixture); }

}  // namespace
}  // namespace shoal::parity
