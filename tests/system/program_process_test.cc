// The program and its system: signals, limits, descriptors, special files.
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "tests/system/program_testing.h"

namespace shoal {
namespace {

using ::testing::Not;

class ProgramAndSystem : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    std::string text;
    for (int i = 0; i < 400; ++i) text += "And on and on it goes, with no end in sight. ";
    write("long.txt", text);
  }

  // Says a long text with `options`, runs `then` once the sound file of `pattern` has begun, and waits.
  Outcome interrupt(const std::string& options, const std::string& pattern, const std::string& then) const {
    return run_shell("$SHOAL say --file long.txt " + options +
                     " & child=$!\n"
                     "for i in $(seq 600); do [ -s \"$(ls -A | grep '" +
                     pattern + "' | head -n 1)\" ] && break; sleep 0.1; done\n" + then + "\nwait $child");
  }

  void expect_nothing_left() const {
    for (const fs::directory_entry& entry : fs::directory_iterator(dir_)) {
      const std::string name = entry.path().filename().string();
      EXPECT_FALSE(name.starts_with("out") || name.starts_with(".shoal")) << "left behind: " << name;
    }
  }
};

constexpr int kShellAddsForSignals = 128;

TEST_F(ProgramAndSystem, AHangupEndsSayLikeAnInterrupt) {
  const Outcome outcome = interrupt("-o out.wav", "^.shoal", "kill -HUP $child");
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("cancelled"));
  expect_nothing_left();
}

TEST_F(ProgramAndSystem, TwoSignalsInARowLeaveNoFile) {
  const Outcome outcome = interrupt("-o out.wav", "^.shoal", "kill -TERM $child; kill -TERM $child");
  // The first may have ended it before the second came.
  EXPECT_THAT(outcome.exit_code, ::testing::AnyOf(130, kShellAddsForSignals + SIGTERM)) << outcome.err;
  expect_nothing_left();
}

// Both signals come while no step of the program can notice the first.
TEST_F(ProgramAndSystem, TwoSignalsWhileStoppedKillItAndLeaveNoFile) {
  const Outcome outcome = interrupt(
      "-o out.wav", "^.shoal", "kill -STOP $child; kill -TERM $child; kill -INT $child; kill -CONT $child");
  EXPECT_THAT(outcome.exit_code,
              ::testing::AnyOf(kShellAddsForSignals + SIGTERM, kShellAddsForSignals + SIGINT))
      << outcome.err;
  expect_nothing_left();
}

TEST_F(ProgramAndSystem, AnInterruptedStreamKeepsAnExistingFile) {
  write("out.pcm", "");
  const Outcome older = interrupt("--stream -o out.pcm", "^out.pcm$", "kill -TERM $child");
  EXPECT_EQ(older.exit_code, 130) << older.err;
  EXPECT_GT(fs::file_size(dir_ / "out.pcm"), 0u);
  fs::remove(dir_ / "out.pcm");
  interrupt("--stream -o out.pcm", "^out.pcm$", "kill -TERM $child");
  EXPECT_FALSE(fs::exists(dir_ / "out.pcm")) << "a new one is half a file";
}

TEST_F(ProgramAndSystem, ExceedingTheFileSizeLimitIsAWriteError) {
  for (const std::string more : {"", " --stream"}) {
    const Outcome outcome = run_shell("ulimit -f 8\nexec $SHOAL say --file long.txt -o out.wav" + more);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("out.wav"), HasSubstr("File too large")));
    expect_nothing_left();
  }
}

TEST_F(ProgramAndSystem, AFifoInPlaceOfAFileIsRefusedByName) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  const auto expect_refused = [&](const std::string& arguments) {
    const Outcome outcome = run_shell("timeout 60 $SHOAL " + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("fifo"), HasSubstr("expected a regular file"))) << arguments;
  };
  expect_refused("say Hello -o out.wav --reference fifo --reference-text Words.");
  expect_refused("say --file fifo -o out.wav");
  expect_refused("say Hello -o out.wav --config fifo");
  expect_refused("voices add ann --audio fifo --text Words.");
  fs::create_directories(dir_ / "model");
  const std::string set = std::string(SHOAL_SOURCE_DIR) + "/tests/data/fish/set_a";
  const std::vector<std::string> files = {"model.pth",         "codec.pth",          "config.json",
                                          "codec_config.json", "tokenizer.tiktoken", "special_tokens.json"};
  for (const std::string& pipe : files) {
    for (const std::string& file : files) {
      fs::remove(dir_ / "model" / file);
      file == pipe ? fs::create_symlink("../fifo", dir_ / "model" / file)
                   : fs::create_symlink(set + "/" + file, dir_ / "model" / file);
    }
    const Outcome outcome = run_shell("timeout 60 $SHOAL say Hello -o out.wav --model model");
    EXPECT_EQ(outcome.exit_code, 2) << pipe << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(pipe));
  }
  expect_nothing_left();
}

TEST_F(ProgramAndSystem, HugeJsonInAModelFolderIsRefusedByItsSize) {
  const std::string set = std::string(SHOAL_SOURCE_DIR) + "/tests/data/fish/set_a";
  for (const std::string name : {"config.json", "generation_config.json", "codec_config.json",
                                 "tokenizer.tiktoken", "special_tokens.json"}) {
    fs::remove_all(dir_ / "model");
    fs::copy(set, dir_ / "model");
    write("model/" + name, "");
    fs::resize_file(dir_ / "model" / name, uintmax_t{60} << 20);
    const Outcome outcome = run("say Hello -o out.wav --model model");
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(name), HasSubstr("at most")));
  }
}

TEST_F(ProgramAndSystem, ClosedStandardDescriptorsAreNotReused) {
  // What descriptor 2 is while the program runs, and what becomes of the sound.
  const Outcome outcome = run_shell(
      "$SHOAL say --file long.txt --stream -o out.pcm <&- >&- 2>&- & child=$!\n"
      "for i in $(seq 600); do [ -s out.pcm ] && break; sleep 0.1; done\n"
      "for i in 0 1 2; do readlink /proc/$child/fd/$i; done\n"
      "kill -TERM $child; wait $child");
  EXPECT_EQ(outcome.out, "/dev/null\n/dev/null\n/dev/null\n") << outcome.err;
  // The program does not claim to have written sound to a closed standard output.
  EXPECT_EQ(run_shell("$SHOAL say Hello -o - --format pcm >&-").exit_code, 1);
  EXPECT_EQ(run_shell("$SHOAL say - -o out.wav <&-").exit_code, 1);
}

TEST_F(ProgramAndSystem, MoreThreadsThanCpusAreReducedWithAWarning) {
  ASSERT_EQ(run("say 'Hello there.' -o out1.wav").exit_code, 0);
  const Outcome outcome = run_shell("taskset -c 0 $SHOAL say 'Hello there.' -o out2.wav --threads 1024");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("threads: 1024 are asked for"), HasSubstr("1 CPU")));
  EXPECT_EQ(read_file(path("out1.wav"), 1 << 24), read_file(path("out2.wav"), 1 << 24));
  EXPECT_EQ(run("say 'Hello there.' -o out2.wav --threads 1024 --quiet").err, "");
  const Outcome refused = run("say Hello -o out3.wav --threads 1025");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("threads: expected 0 to 1024"));
}

// A server in a terminal of its own ends when the terminal is closed, as one would expect.
TEST_F(ProgramAndSystem, AServerWhoseTerminalIsClosedDrains) {
  int terminal = -1;
  const pid_t server = forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(server, 0);
  if (server == 0) {
    execl(SHOAL_PROGRAM, SHOAL_PROGRAM, "serve", "--listen", "127.0.0.1:0", nullptr);
    _exit(99);
  }
  std::string log;
  char block[4096];
  while (log.find("ready: ") == std::string::npos) {
    const ssize_t got = read(terminal, block, sizeof block);
    if (got <= 0) break;
    log.append(block, static_cast<size_t>(got));
  }
  EXPECT_THAT(log, HasSubstr("ready: "));
  close(terminal);
  int status = -1;
  for (int i = 0; i < 1200 && waitpid(server, &status, WNOHANG) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (status == -1) {
    kill(server, SIGKILL);
    waitpid(server, &status, 0);
  }
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace shoal
