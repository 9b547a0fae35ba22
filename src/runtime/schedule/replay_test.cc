// The pretended engine of replay_testing.h. Its tests are those that use it.
#include <algorithm>
#include <gtest/gtest.h>

#include "runtime/schedule/replay_testing.h"

namespace shoal::runtime {
namespace {

constexpr int64_t kStepUs = 1000;
constexpr int64_t kFrameUs = 3000;

}  // namespace

int64_t PretendedPages::available() const {
  int64_t held = own_;
  for (const auto& [voice, holders] : holders_) held += std::ssize(holders) - std::ranges::count(holders, 0);
  return pages_ - held;
}

int64_t PretendedPages::shared(const Held& held) const {
  if (held.of_voice == 0) return 0;
  const std::vector<int64_t>& holders = holders_.at(held.voice);
  return std::count_if(holders.begin(), holders.begin() + held.of_voice, [](int64_t n) { return n > 1; });
}

void PretendedPages::attach(Held& held, int64_t columns) {
  std::vector<int64_t>& holders = holders_[held.voice];
  held.of_voice = std::min(columns / page_size_, std::ssize(holders));
  for (int64_t i = 0; i < held.of_voice; ++i) ++holders[static_cast<size_t>(i)];
}

bool PretendedPages::hold(Held& held, int64_t columns) {
  if (columns > (held.all() + available()) * page_size_) return false;
  while (held.all() * page_size_ < columns) {
    int64_t cached = 0;
    for (const auto& [voice, holders] : holders_) cached += std::ssize(holders);
    if (own_ + cached == pages_) evict_one();
    ++held.own;
    ++own_;
  }
  return true;
}

// Whoever holds a page of a voice holds those before it, so one that nobody holds has only such behind it.
void PretendedPages::evict_one() {
  for (auto& [voice, holders] : holders_) {
    if (holders.empty() || holders.back() > 0) continue;
    holders.pop_back();
    return;
  }
}

void PretendedPages::publish(Held& held, int64_t columns) {
  std::vector<int64_t>& holders = holders_[held.voice];
  while (held.own > 0 && held.of_voice == std::ssize(holders) && held.of_voice < columns / page_size_) {
    holders.push_back(1);
    ++held.of_voice;
    --held.own;
    --own_;
  }
}

void PretendedPages::release(Held& held) {
  for (int64_t i = 0; i < held.of_voice; ++i) --holders_[held.voice][static_cast<size_t>(i)];
  own_ -= held.own;
  held.own = held.of_voice = 0;
}

Replay::Replay(const std::vector<Request>& requests, const Machine& machine)
    : machine_(machine), pages_(machine.pages, machine.limits.page_size) {
  for (const Request& request : requests) {
    index_of_[request.name] = jobs_.size();
    jobs_.push_back({.request = request, .held = {.voice = request.voice}});
  }
}

std::vector<std::string> Replay::run(int64_t max_steps) {
  std::vector<std::string> lines;
  while (!all_gone() && std::ssize(lines) < max_steps) lines.push_back(round());
  return lines;
}

bool Replay::all_gone() const {
  return std::ranges::all_of(jobs_, [](const Job& job) { return job.gone; });
}

std::string Replay::round() {
  std::string line;
  admit(line);
  step(line);
  ++now_;
  forget_finished();
  if (!line.empty()) line.pop_back();
  return line;
}

void Replay::forget_finished() {
  for (Job& job : jobs_) {
    if (job.gone || job.finishing_since < 0 || now_ < job.finishing_since + job.request.finishing) continue;
    job.gone = true;
    job.ended_at = now_;
  }
}

void Replay::admit(std::string& line) {
  const Admission plan = plan_admission(waiting(), active(), limits(), now_ * kStepUs);
  expect_sound(plan, waiting(), active(), limits(), now_ * kStepUs);
  for (const JobEnd& ended : plan.ends) {
    line += std::string(1, static_cast<char>(ended.id)) + "! ";
    end(find(ended.id), true);
  }
  for (const JobId id : plan.admitted) find(id).admitted = true;
}

StepPlan Replay::plan_and_attach() {
  for (;;) {
    const StepPlan plan = plan_step(active(), limits(), now_ * kStepUs);
    expect_sound(plan, active(), limits(), now_ * kStepUs);
    bool attached = false;
    for (const StepRows& rows : plan.rows) {
      Job& job = find(rows.id);
      if (job.started) continue;
      // Never the last column, which has to be computed.
      pages_.attach(job.held, std::min(job.request.voice_columns, job.request.prompt - 1));
      job.columns_done = job.held.all() * machine_.limits.page_size;
      job.started = attached = true;
    }
    if (!attached) return plan;
  }
}

void Replay::step(std::string& line) {
  const StepPlan plan = plan_and_attach();
  line += show(plan);
  for (const JobEnd& ended : plan.ends) end(find(ended.id), true);
  for (const JobId id : plan.preempted) {
    Job& job = find(id);
    pages_.release(job.held);
    job.columns_done = 0;
    job.started = false;
    ++job.preemptions;
  }
  for (const StepRows& rows : plan.rows) apply(rows);
}

void Replay::apply(const StepRows& rows) {
  Job& job = find(rows.id);
  if (!pages_.hold(job.held, job.columns_done + rows.columns)) {
    EXPECT_FALSE(machine_.knows_shared_pages) << "pages were promised that are not there";
    return;
  }
  job.columns_done += rows.columns;
  job.computed += rows.columns;
  pages_.publish(job.held, std::min(job.columns_done, job.request.voice_columns));
  if (!rows.frame) return;
  ++job.frames;
  ++job.spoken;
  if (job.frames == job.request.frames) finish_utterance(job);
}

void Replay::finish_utterance(Job& job) {
  pages_.release(job.held);
  job.columns_done = job.frames = 0;
  job.started = false;
  if (++job.utterance < job.request.utterances) return;
  job.finishing_since = now_ + 1;
}

void Replay::end(Job& job, bool early) {
  pages_.release(job.held);
  job.gone = true;
  job.ended_at = now_;
  job.ended_early = early;
}

std::vector<WaitingJob> Replay::waiting() const {
  std::vector<WaitingJob> waiting;
  for (const Job& job : jobs_) {
    const Request& request = job.request;
    if (job.admitted || job.gone || request.arrival > now_) continue;
    waiting.push_back({.id = static_cast<JobId>(request.name),
                       .client = request.client,
                       .voice = request.voice,
                       .arrival_us = request.arrival * kStepUs,
                       .deadline_us = request.deadline * kStepUs,
                       .prompt_columns = request.prompt,
                       .cancelled = request.cancelled >= 0 && request.cancelled <= now_});
  }
  return waiting;
}

std::vector<ActiveJob> Replay::active() const {
  std::vector<ActiveJob> active;
  for (const Job& job : jobs_) {
    if (job.admitted && !job.gone) active.push_back(describe(job));
  }
  return active;
}

ActiveJob Replay::describe(const Job& job) const {
  const Request& request = job.request;
  return {.id = static_cast<JobId>(request.name),
          .client = request.client,
          .voice = request.voice,
          .arrival_us = request.arrival * kStepUs,
          .deadline_us = request.deadline * kStepUs,
          .columns = request.prompt + job.frames,
          .columns_done = job.columns_done,
          .pages_held = job.held.all(),
          .pages_shared = machine_.knows_shared_pages ? pages_.shared(job.held) : 0,
          .started = job.started,
          .frames = job.frames,
          .lead_us = job.spoken * kFrameUs - (now_ - request.arrival) * kStepUs,
          .cancelled = request.cancelled >= 0 && request.cancelled <= now_,
          .paused = request.paused >= 0 && request.paused <= now_ && now_ < request.resumed,
          .finishing = job.finishing_since >= 0};
}

ScheduleLimits Replay::limits() const {
  ScheduleLimits limits = machine_.limits;
  limits.pages_available = pages_.available();
  return limits;
}

std::string show(const StepPlan& plan) {
  std::string line;
  for (const JobEnd& ended : plan.ends) line += std::string(1, static_cast<char>(ended.id)) + "! ";
  for (const JobId id : plan.preempted) line += std::string(1, static_cast<char>(id)) + "~ ";
  for (const StepRows& rows : plan.rows) {
    line += static_cast<char>(rows.id) + std::to_string(rows.columns) + (rows.frame ? "* " : " ");
  }
  return line;
}

std::vector<std::string> replay(const std::vector<Request>& requests, const Machine& machine) {
  return Replay(requests, machine).run();
}

}  // namespace shoal::runtime
