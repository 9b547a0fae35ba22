#include "fleet/child.h"

#include <csignal>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/error.h"

namespace shoal::fleet {
namespace {

using ::testing::HasSubstr;

constexpr int kPatience_ms = 20'000;

// Until `what` stands in the output or the output ends.
std::string read_until(const Child& child, const std::string& what) {
  std::string text;
  pollfd ready{.fd = child.output(), .events = POLLIN};
  while (text.find(what) == std::string::npos && poll(&ready, 1, kPatience_ms) == 1) {
    char bytes[4096];
    const ssize_t count = read(child.output(), bytes, sizeof bytes);
    if (count <= 0) break;
    text.append(bytes, static_cast<size_t>(count));
  }
  return text;
}

Ended wait_for(Child& child) {
  for (int i = 0; i < kPatience_ms / 10 && !child.poll(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return child.poll().value_or(Ended{});
}

Command shell(const std::string& commands) { return {.program = "/bin/sh", .arguments = {"-c", commands}}; }

TEST(Child, BothStreamsEnvironmentAndExitCodeComeBack) {
  Command command = shell("echo out $FLEET_TEST; echo err >&2; cat; exit 7");
  command.environment = {"FLEET_TEST=there"};
  Child child(command);
  EXPECT_EQ(read_until(child, "never"), "out there\nerr\n");
  EXPECT_EQ(to_words(wait_for(child)), "exit code 7");
}

TEST(Child, RunsOnTheCpusThatItMayUse) {
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &mine)) --last;
  Command command = shell("grep Cpus_allowed_list /proc/self/status");
  command.cpus = {last};
  Child child(command);
  EXPECT_THAT(read_until(child, "never"), HasSubstr(concat("\t", last, "\n")));
}

TEST(Child, ASignalIsToldOf) {
  Child child(shell("echo begun; sleep 60"));
  read_until(child, "begun");
  child.send(SIGKILL);
  EXPECT_EQ(to_words(wait_for(child)), "signal 9 (Killed)");
}

TEST(Child, DestroyingItEndsItEvenIfItIsStopped) {
  pid_t pid = 0;
  {
    Child child(shell("echo begun; sleep 60"));
    read_until(child, "begun");
    pid = child.pid();
    child.send(SIGSTOP);
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST(Child, DiesWithTheProcessThatStartedIt) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t between = fork();
  if (between == 0) {
    const Child child(shell("sleep 60"));
    const pid_t pid = child.pid();
    if (write(ends[1], &pid, sizeof pid) != sizeof pid) _exit(1);
    raise(SIGKILL);
  }
  close(ends[1]);
  pid_t orphan = 0;
  ASSERT_EQ(read(ends[0], &orphan, sizeof orphan), static_cast<ssize_t>(sizeof orphan));
  close(ends[0]);
  waitpid(between, nullptr, 0);
  // Ended, or a zombie that its new parent has not waited for.
  const auto is_gone = [&] {
    std::FILE* file = std::fopen(concat("/proc/", orphan, "/stat").c_str(), "r");
    if (file == nullptr) return true;
    char state = 0;
    const int found = std::fscanf(file, "%*d (%*[^)]) %c", &state);
    std::fclose(file);
    return found == 1 && state == 'Z';
  };
  for (int i = 0; i < kPatience_ms / 10 && !is_gone(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(is_gone());
}

TEST(Child, AProgramThatIsNotThereIsRefused) { EXPECT_THROW(Child({.program = "/no/such/program"}), Error); }

}  // namespace
}  // namespace shoal::fleet
