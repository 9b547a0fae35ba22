// The words of a small program, and what bash offers with its script. The scripts of zsh and fish are only
// read.
#include "cli/completion.h"

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <gmock/gmock.h>
#include <memory>

#include "base/temporary_folder_testing.h"

namespace shoal::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class Completion : public ::testing::Test {
 protected:
  Completion() {
    CLI::App* voices = app_.add_subcommand("voices", "List voices");
    voices->add_option("--format,-f", text_, "of the list: short, or it's [long]; default: short")
        ->check(CLI::IsMember(std::vector<std::string>{"short", "long"}));
    CLI::App* add = voices->add_subcommand("add", "Add a voice");
    add->add_option("name", text_, "of the voice");
    add->add_flag("--quiet", flag_, "say nothing");
    add->add_option("--hidden", text_, "for tests")->group("");
    app_.add_subcommand("hidden", "for tests")->group("");
  }

  // Offered for the last of the words after "shoal".
  std::string offered(const std::string& words) const {
    const std::string script = folder_.write("script", bash_completion(command_words(app_)));
    const std::string command =
        "bash -c '. " + script + "; COMP_WORDS=(shoal " + words +
        "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _shoal; echo -n \"${COMPREPLY[*]}\"'";
    const std::unique_ptr<FILE, int (*)(FILE*)> bash(popen(command.c_str(), "r"), pclose);
    std::array<char, 4096> text{};
    return {text.data(), std::fread(text.data(), 1, text.size(), bash.get())};
  }

  CLI::App app_{"A program", "shoal"};
  std::string text_;
  bool flag_ = false;
  const TemporaryFolder folder_;
};

TEST_F(Completion, FindsEveryCommandAndOptionThatIsShown) {
  const std::vector<CommandWords> commands = command_words(app_);
  ASSERT_EQ(commands.size(), 3U);
  EXPECT_EQ(commands[0].path, "");
  ASSERT_EQ(commands[0].subcommands.size(), 1U);
  EXPECT_EQ(commands[1].path, "voices");
  const auto& format = commands[1].options.back();
  EXPECT_THAT(format.names, ElementsAre("--format", "-f"));
  EXPECT_THAT(format.choices, ElementsAre("short", "long"));
  EXPECT_EQ(commands[2].path, "voices add");
  EXPECT_FALSE(commands[2].options.back().takes_value);
}

TEST_F(Completion, BashOffersCommandsOptionsAndChoices) {
  EXPECT_EQ(offered("v"), "voices");
  EXPECT_EQ(offered("voices a"), "add");
  EXPECT_EQ(offered("voices --f"), "--format");
  EXPECT_EQ(offered("voices --format \"\""), "short long");
  EXPECT_EQ(offered("voices -f l"), "long");
  EXPECT_EQ(offered("voices add --q"), "--quiet");
  EXPECT_EQ(offered("voices add --f"), "");  // belongs to the command above
  EXPECT_EQ(offered("voices add --h"), "--help");
  EXPECT_EQ(offered("hid"), "");
}

TEST_F(Completion, QuotesWhatEachShellReadsAsItsOwn) {
  const std::vector<CommandWords> commands = command_words(app_);
  EXPECT_THAT(zsh_completion(commands),
              HasSubstr("{--format,-f}'[of the list\\: short, or it'\\''s \\[long\\]]"));
  EXPECT_THAT(fish_completion(commands),
              HasSubstr("-l format -s f -x -a 'short long' -d 'of the list: short, or it\\'s [long]'"));
  EXPECT_THAT(zsh_completion(commands) + fish_completion(commands), Not(HasSubstr("hidden")));
}

}  // namespace
}  // namespace shoal::cli
