// The usual mistakes at the command line, each with the answer that a person sees: mistakes.txt.
#include <cctype>
#include <sstream>

#include "tests/system/program_testing.h"
#include "tests/system/terminal_testing.h"

namespace shoal {
namespace {

// "$ " and a command, the text that a terminal shows, "exit " and the exit code; empty lines and those that
// begin with # stand between them.
struct Mistake {
  std::string command, text;
  int exit_code = 0;
};

std::vector<Mistake> read_mistakes() {
  std::istringstream file(read_file(std::string(SHOAL_SOURCE_DIR) + "/tests/system/mistakes.txt", 1 << 20));
  std::vector<Mistake> all;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("$ ")) {
      all.push_back({.command = line.substr(2), .text = {}});
      inside = true;
    } else if (line.starts_with("exit ")) {
      all.back().exit_code = std::stoi(line.substr(5));
      inside = false;
    } else if (inside) {
      all.back().text += line + "\n";
    }
  }
  return all;
}

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

class Mistakes : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    for (const char* folder : {"bin", "bare"}) {
      fs::create_directories(dir_ / folder);
      fs::create_symlink(SHOAL_PROGRAM, dir_ / folder / "shoal");
    }
    write_script("bin/play", "echo \"$@\" >arguments\n/bin/cat >played");
    write_script("bin/pw-play", "/bin/cat \"$1\" >played");
    write_script("bin/mpv", "/bin/cat >/dev/null\nexit 3");
    write("long.txt", std::string(300 << 10, 'a'));
    write("chapter.txt", "The first chapter.");
  }

  void write_script(const std::string& name, const std::string& commands) const {
    write(name, "#!/bin/sh\n" + commands + "\n");
    fs::permissions(path(name), fs::perms::owner_all);
  }

  // As in the file: escapes as \e, the folder as DIR.
  Mistake shown(const std::string& command) const {
    const std::string setting =
        "export PATH='" + path("bin") + "' NO_COLOR=1 TERM=xterm XDG_RUNTIME_DIR='" + path("run") + "'\n";
    Screen screen = run_in_terminal(setting + command, dir_.string());
    replace_all(screen.text, "\x1b", "\\e");
    replace_all(screen.text, dir_.string(), "DIR");
    return {.command = command, .text = std::move(screen.text), .exit_code = screen.exit_code};
  }
};

TEST_F(Mistakes, AreAnsweredInOneSentence) {
  const std::vector<Mistake> expected = read_mistakes();
  ASSERT_GT(expected.size(), 20u);
  std::string all;
  for (const Mistake& mistake : expected) {
    const Mistake found = shown(mistake.command);
    EXPECT_EQ(found.text, mistake.text) << mistake.command;
    EXPECT_EQ(found.exit_code, mistake.exit_code) << mistake.command;
    all += concat("$ ", found.command, "\n", found.text, "exit ", found.exit_code, "\n\n");
  }
  // To look at, when answers have changed.
  if (const char* transcript = std::getenv("TRANSCRIPT")) std::ofstream(transcript) << all;
}

TEST_F(Mistakes, APlayerHearsTheSamplesOfTheFile) {
  ASSERT_EQ(run("say 'Hello there.' -o one.pcm").exit_code, 0);
  ASSERT_EQ(shown("shoal say 'Hello there.' --quiet").text, "");
  EXPECT_EQ(read_file(path("played"), 1 << 24), read_file(path("one.pcm"), 1 << 24));
  EXPECT_THAT(read_file(path("arguments"), 1000), HasSubstr("-r 16000"));
  ASSERT_EQ(run("say 'Hello there.' -o one.wav").exit_code, 0);
  ASSERT_EQ(shown("shoal say 'Hello there.' --quiet --player pw-play").text, "");
  EXPECT_EQ(read_file(path("played"), 1 << 24), read_file(path("one.wav"), 1 << 24));
}

TEST_F(Mistakes, AnInterruptEndsThePlayer) {
  write_script("bin/play", "echo $$ >player\nexec /bin/sleep 600");
  const Mistake ended = shown(
      "shoal say 'Hello there.' --quiet & child=$!\n"
      "for i in 0 1 2 3 4 5 6 7 8 9; do [ -s player ] && break; /bin/sleep 1; done\n"
      "/bin/sleep 1\nkill -TERM $child; wait $child");
  EXPECT_EQ(ended.exit_code, 130) << ended.text;
  EXPECT_NE(kill(std::stoi(read_file(path("player"), 100)), 0), 0) << "the player still runs";
}

}  // namespace
}  // namespace shoal
