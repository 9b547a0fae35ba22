#include "cli/help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <unistd.h>

#include "base/error.h"
#include "cli/colour.h"

namespace shoal::cli {
namespace {

constexpr size_t kColumn = 34;
constexpr const char* kHelpAll = "--help-all";

class Help : public CLI::Formatter {
 public:
  explicit Help(std::vector<std::string> first = {}) : first_(std::move(first)) { column_width(kColumn); }

  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    return Formatter::make_group(in_colour(group, Colour::bold, STDOUT_FILENO), is_positional, options);
  }

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    if (first_.empty() || mode != CLI::AppFormatMode::Normal)
      return Formatter::make_help(app, std::move(name), mode);
    std::vector<const CLI::Option*> options;
    for (const std::string& flag : first_) options.push_back(app->get_option(flag));
    return concat(make_description(app), make_usage(app, std::move(name)), make_positionals(app),
                  make_group("Options", false, options), "\n", make_footer(app));
  }

 private:
  std::vector<std::string> first_;
};

}  // namespace

void set_help_style(CLI::App& app) { app.formatter(std::make_shared<Help>()); }

void show_first(CLI::App& command, std::vector<std::string> flags) {
  command.set_help_all_flag(kHelpAll,
                            concat("Print every option, ", command.get_options().size(), " in all"));
  flags.insert(flags.begin(), {"--help", kHelpAll});
  command.formatter(std::make_shared<Help>(std::move(flags)));
}

}  // namespace shoal::cli
