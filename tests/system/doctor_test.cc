// shoal doctor: reports what works and what fails.
#include "base/json.h"
#include "tests/system/program_testing.h"

namespace shoal {
namespace {

using ::testing::ContainsRegex;

TEST_F(Program, DoctorReportsAWorkingInstallation) {
  const Outcome well = run("doctor --device cpu --threads 2");
  EXPECT_EQ(well.exit_code, 0) << well.err;
  for (const char* check : {"device", "model", "arithmetic", "voice", "speech"})
    EXPECT_THAT(well.out, ContainsRegex(std::string("\\b") + check + " +ok: ")) << check;
  EXPECT_THAT(well.out, ContainsRegex("[0-9.]+ s of sound in"));
}

TEST_F(Program, DoctorReportsTheFailureAndSkipsTheRest) {
  fs::create_directories(dir_ / "empty_model");
  const Outcome empty = run("doctor --device cpu --model empty_model");
  EXPECT_EQ(empty.exit_code, 2) << "a wrong folder is the user's";
  EXPECT_THAT(empty.out, ContainsRegex("device +ok: "));
  EXPECT_THAT(empty.out, ContainsRegex("model +FAILED: .*empty_model"));
  EXPECT_THAT(empty.out, ContainsRegex("speech +skipped\n"));
  const Outcome nobody = run("doctor --device cpu --voice nobody --json");
  EXPECT_EQ(nobody.exit_code, 2);
  const Json report = Json::parse(nobody.out, "report");
  EXPECT_THAT(report.at("error").as_string(), HasSubstr("nobody"));
  EXPECT_EQ(report.at("device").as_string(), report.at("test_tensor_device").as_string());
  EXPECT_EQ(report.at("checks").as_array()[2].at("outcome").as_string(), "ok");
  EXPECT_EQ(report.at("checks").as_array()[3].at("outcome").as_string(), "FAILED");
  EXPECT_EQ(run("doctor --threads many").exit_code, 2) << "settings are the user's";
}

}  // namespace
}  // namespace shoal
