// plan_admission: one function for each rule.
#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

#include "runtime/schedule/job_rules.h"

namespace shoal::runtime {
namespace {

int64_t earliest(int64_t a_us, int64_t b_us) {
  if (a_us == 0 || b_us == 0) return a_us + b_us;
  return std::min(a_us, b_us);
}

// Jobs that do not end now, oldest first.
std::vector<const WaitingJob*> end_jobs(std::span<const WaitingJob> waiting, int64_t now_us,
                                        std::vector<JobEnd>& ends) {
  std::vector<const WaitingJob*> queue;
  for (const WaitingJob& job : waiting) {
    if (const auto why = end_of(job, now_us)) {
      ends.push_back({.id = job.id, .why = *why});
    } else {
      queue.push_back(&job);
    }
  }
  std::ranges::sort(queue, [](const WaitingJob* a, const WaitingJob* b) { return is_older(*a, *b); });
  return queue;
}

int64_t room_for_more(std::span<const ActiveJob> active, const ScheduleLimits& limits) {
  const int64_t running = std::ranges::count_if(active, is_running);
  return std::min(limits.max_batch_size - running, limits.max_streams - std::ssize(active));
}

int64_t next_deadline_us(std::span<const WaitingJob* const> queue) {
  int64_t deadline_us = 0;
  for (const WaitingJob* job : queue) deadline_us = earliest(deadline_us, job->deadline_us);
  return deadline_us;
}

// Pages that no active job holds or is promised; paused ones give theirs up. Negative when too much has been
// promised already.
int64_t unpromised_pages(std::span<const ActiveJob> active, const ScheduleLimits& limits) {
  int64_t pages = limits.pages_available;
  for (const ActiveJob& job : active) {
    if (job.paused) pages += pages_returned(job);
    if (is_running(job)) pages -= pages_promised(job, limits.page_size);
  }
  return pages;
}

class AdmissionRound {
 public:
  AdmissionRound(std::span<const WaitingJob* const> queue, std::span<const ActiveJob> active,
                 const ScheduleLimits& limits);
  std::vector<JobId> admit();

 private:
  struct Entry {
    const WaitingJob* job;
    bool admitted = false;
  };
  struct Client {
    int64_t active = 0;
    std::vector<Entry*> queue;  // oldest first
    size_t next = 0;            // the oldest that has not been admitted
  };
  // Whose turn it is: fewest active jobs, then the oldest waiting one.
  using Turn = std::tuple<int64_t, int64_t, JobId, Client*>;

  static Turn turn_of(Client& client);
  bool try_admit(Entry& entry);
  bool admit_followers(uint64_t voice);
  bool keeps_its_share(const Client& client) const;

  const ScheduleLimits& limits_;
  int64_t room_;
  int64_t pages_left_;
  bool nothing_runs_;
  std::vector<Entry> entries_;
  std::unordered_map<uint64_t, Client> clients_;              // that wait or are active
  std::unordered_map<uint64_t, std::vector<Entry*>> voices_;  // shortest prompt first
  std::set<Turn> turns_;                                      // of clients that wait
  std::vector<JobId> admitted_;
};

AdmissionRound::AdmissionRound(std::span<const WaitingJob* const> queue, std::span<const ActiveJob> active,
                               const ScheduleLimits& limits)
    : limits_(limits),
      room_(room_for_more(active, limits)),
      pages_left_(unpromised_pages(active, limits)),
      nothing_runs_(std::ranges::none_of(active, is_running)) {
  for (const ActiveJob& job : active) ++clients_[job.client].active;
  entries_.reserve(queue.size());
  for (const WaitingJob* job : queue) {
    Entry& entry = entries_.emplace_back(Entry{.job = job});
    clients_[job->client].queue.push_back(&entry);
    if (job->voice != 0) voices_[job->voice].push_back(&entry);
  }
  for (auto& [id, client] : clients_) {
    if (!client.queue.empty()) turns_.insert(turn_of(client));
  }
  for (auto& [voice, entries] : voices_) {
    std::ranges::stable_sort(entries, {}, [](const Entry* entry) { return entry->job->prompt_columns; });
  }
}

std::vector<JobId> AdmissionRound::admit() {
  while (room_ > 0 && !turns_.empty()) {
    const Client& client = *std::get<Client*>(*turns_.begin());
    Entry& leader = *client.queue[client.next];
    if (!try_admit(leader)) break;
    if (limits_.batch_grouping && !admit_followers(leader.job->voice)) break;
  }
  return std::move(admitted_);
}

AdmissionRound::Turn AdmissionRound::turn_of(Client& client) {
  const WaitingJob& oldest = *client.queue[client.next]->job;
  return {client.active, oldest.arrival_us, oldest.id, &client};
}

// Returns false and changes nothing if there are not enough pages.
bool AdmissionRound::try_admit(Entry& entry) {
  const int64_t pages = pages_for(entry.job->prompt_columns + 1, limits_.page_size);
  const bool is_alone = nothing_runs_ && admitted_.empty();
  if (pages > pages_left_ && !is_alone) return false;
  pages_left_ -= pages;
  --room_;
  admitted_.push_back(entry.job->id);

  Client& client = clients_.at(entry.job->client);
  turns_.erase(turn_of(client));
  entry.admitted = true;
  ++client.active;
  while (client.next < client.queue.size() && client.queue[client.next]->admitted) ++client.next;
  if (client.next < client.queue.size()) turns_.insert(turn_of(client));
  return true;
}

// Jobs of the voice that just entered. False when one did not fit.
bool AdmissionRound::admit_followers(uint64_t voice) {
  const auto waiting = voices_.find(voice);
  if (waiting == voices_.end()) return true;
  for (Entry* entry : waiting->second) {
    if (room_ == 0) break;
    if (entry->admitted || !keeps_its_share(clients_.at(entry->job->client))) continue;
    if (!try_admit(*entry)) return false;
  }
  voices_.erase(waiting);  // jobs that their client's share kept out come again as leaders
  return true;
}

bool AdmissionRound::keeps_its_share(const Client& client) const {
  const bool others_wait = turns_.size() > 1;
  const int64_t share = std::max<int64_t>(1, limits_.max_batch_size / std::ssize(clients_));
  return !others_wait || client.active < share;
}

}  // namespace

Admission plan_admission(std::span<const WaitingJob> waiting, std::span<const ActiveJob> active,
                         const ScheduleLimits& limits, int64_t now_us) {
  check_limits(limits);
  Admission plan;
  const std::vector<const WaitingJob*> queue = end_jobs(waiting, now_us, plan.ends);
  plan.wake_us = next_deadline_us(queue);
  const int64_t room = room_for_more(active, limits);
  if (queue.empty() || room <= 0) return plan;

  const int64_t company_until_us = queue.front()->arrival_us + limits.batch_timeout_us;
  if (now_us < company_until_us && std::ssize(queue) < room) {
    plan.wake_us = earliest(plan.wake_us, company_until_us);
    return plan;
  }
  plan.admitted = AdmissionRound(queue, active, limits).admit();
  return plan;
}

}  // namespace shoal::runtime
