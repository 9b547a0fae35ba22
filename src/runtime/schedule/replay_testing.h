// A pretended engine for tests of the schedule: no model, a fake clock, and bookkeeping of columns, frames
// and pages (with a prefix cache) as the real one does it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace shoal::runtime {

// Times are numbers of steps.
struct Request {
  char name = 'a';
  int64_t arrival = 0;
  int64_t prompt = 1;         // columns
  int64_t frames = 1;         // of every utterance
  int64_t utterances = 1;     // each with the same prompt
  int64_t voice_columns = 0;  // of the prompt, its first, that are the voice's
  uint64_t client = 0, voice = 0;
  int64_t deadline = 0;    // 0: none
  int64_t cancelled = -1;  // -1: never
  int64_t paused = -1;     // from here
  int64_t resumed = -1;    // to here
  int64_t finishing = 0;   // steps that its sound takes after generation
};

struct Machine {
  ScheduleLimits limits;  // pages_available is ignored
  int64_t pages = 1000;
  bool knows_shared_pages = true;  // fills in pages_shared for the plan
};

// Pages of the pool by holder. Shared ones are the full pages of a voice's part of a prompt.
class PretendedPages {
 public:
  struct Held {
    uint64_t voice = 0;
    int64_t own = 0;
    int64_t of_voice = 0;  // the first ones
    int64_t all() const { return own + of_voice; }
  };

  PretendedPages(int64_t pages, int64_t page_size) : pages_(pages), page_size_(page_size) {}
  int64_t available() const;
  int64_t shared(const Held& held) const;
  // Takes the cached part of the first `columns`, all of them the voice's.
  void attach(Held& held, int64_t columns);
  // False when there are not enough pages.
  bool hold(Held& held, int64_t columns);
  // The first `columns`, all of them the voice's, can be found by others.
  void publish(Held& held, int64_t columns);
  void release(Held& held);

 private:
  void evict_one();
  int64_t pages_, page_size_;
  int64_t own_ = 0;
  std::map<uint64_t, std::vector<int64_t>> holders_;  // of the cached pages of a voice
};

class Replay {
 public:
  struct Job {
    Request request;
    bool admitted = false, gone = false;
    int64_t columns_done = 0, frames = 0, utterance = 0;
    bool started = false;
    int64_t finishing_since = -1;
    PretendedPages::Held held;
    // What became of it.
    int64_t spoken = 0, computed = 0, preemptions = 0, ended_at = -1;
    bool ended_early = false;
  };

  Replay(const std::vector<Request>& requests, const Machine& machine);

  // Runs rounds until all have ended, or max_steps. One string per round: "b~" b was preempted, "c!" c ended
  // early, "a1*" a computed a column and a frame followed, "b3" b computed three columns; "" nothing
  // happened.
  std::vector<std::string> run(int64_t max_steps = 1000);
  const std::vector<Job>& jobs() const { return jobs_; }
  const Job& job(char name) const { return jobs_.at(index_of_.at(name)); }
  bool all_gone() const;
  int64_t now() const { return now_; }

 private:
  std::string round();
  void admit(std::string& line);
  StepPlan plan_and_attach();
  void step(std::string& line);
  void apply(const StepRows& rows);
  void finish_utterance(Job& job);
  void end(Job& job, bool early);
  void forget_finished();
  Job& find(JobId id) { return jobs_.at(index_of_.at(static_cast<char>(id))); }
  std::vector<WaitingJob> waiting() const;
  std::vector<ActiveJob> active() const;
  ActiveJob describe(const Job& job) const;
  ScheduleLimits limits() const;

  Machine machine_;
  PretendedPages pages_;
  std::vector<Job> jobs_;
  std::map<char, size_t> index_of_;
  int64_t now_ = 0;
};

// "c! b~ a1* b3 ", as Replay::run() does.
std::string show(const StepPlan& plan);

std::vector<std::string> replay(const std::vector<Request>& requests, const Machine& machine);

// The invariants of a plan under any load; reported by EXPECT. Written only from the contract.
void expect_sound(const StepPlan& plan, const std::vector<ActiveJob>& active, const ScheduleLimits& limits,
                  int64_t now_us);
void expect_sound(const Admission& plan, const std::vector<WaitingJob>& waiting,
                  const std::vector<ActiveJob>& active, const ScheduleLimits& limits, int64_t now_us);

}  // namespace shoal::runtime
