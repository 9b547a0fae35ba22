// shoal package: a model in the form that a platform wants.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/printable.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/model_archive.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "shoal/model.h"

namespace shoal::cli {
namespace {

struct PackageCommand {
  std::string dir, output = "model.tar.gz";
  bool quiet = false;
};

// The folder of a model that nothing is missing from.
std::string whole_model(const std::string& option) {
  const std::string model = chosen_model(option);
  const ModelReport report = inspect_model(model);
  if (report.problem) throw Error(*report.problem);
  return std::filesystem::canonical(report.dir).string();
}

void check_output(const std::string& output, const std::string& folder) {
  if (!output.ends_with(".tar.gz"))
    fail(ErrorCode::invalid_argument, "output: expected a name that ends with .tar.gz, got ",
         printable(output));
  const std::string place = std::filesystem::weakly_canonical(output).string();
  if (place.starts_with(folder + "/"))
    fail(ErrorCode::invalid_argument, "output: expected a file outside the model's folder, got ",
         printable(output));
}

// SageMaker unpacks the archive into /opt/ml/model: the model's files lie at its top.
void package_for_sagemaker(const PackageCommand& command) {
  const std::string folder = whole_model(command.dir);
  check_output(command.output, folder);
  const std::vector<ArchivedFile> files = files_below(folder);
  const InterruptGuard interrupt;
  ProgressBar bar(wants_progress(command.quiet));
  const int64_t bytes = write_archive(files, command.output, [&](double share, const std::string& name) {
    bar.show(share, name);
    return !interrupt.received();
  });
  bar.clear();
  if (!command.quiet)
    std::printf("%s: %.1f MB, %zu files of %s\n", command.output.c_str(), static_cast<double>(bytes) / 1e6,
                files.size(), folder.c_str());
}

}  // namespace

void add_package(CLI::App& app) {
  const auto options = std::make_shared<PackageCommand>();
  CLI::App& command = *app.add_subcommand("package", "Pack a model for a cloud platform");
  command.require_subcommand(1);
  CLI::App& sagemaker = *command.add_subcommand(
      "sagemaker", "Write a model as Amazon SageMaker takes it: its files in a .tar.gz");
  sagemaker.add_option("dir", options->dir, "model folder; default: the built-in voice");
  sagemaker.add_option("-o,--output", options->output, "the archive to write; an older one is replaced")
      ->type_name("FILE")
      ->capture_default_str();
  sagemaker.add_flag("-q,--quiet", options->quiet, "print nothing but errors");
  sagemaker.footer(
      "Examples:\n"
      "  shoal package sagemaker /models/s1-mini -o model.tar.gz\n"
      "  aws s3 cp model.tar.gz s3://BUCKET/s1-mini/model.tar.gz");
  sagemaker.callback([options] { package_for_sagemaker(*options); });
}

}  // namespace shoal::cli
