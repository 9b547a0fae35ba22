#include "runtime/families/language/speech_inbox.h"

namespace shoal::runtime {

void SpeechInbox::put(std::shared_ptr<SpeechJob> job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
}

void SpeechInbox::put(std::shared_ptr<PreparingSpeech> speech) {
  const std::lock_guard lock(mutex_);
  preparing_.push_back(std::move(speech));
}

void SpeechInbox::stop(const Stop& stop) {
  const std::lock_guard lock(mutex_);
  if (!stop_) stop_ = stop;
}

std::optional<SpeechInbox::Stop> SpeechInbox::take(std::vector<std::shared_ptr<SpeechJob>>& waiting,
                                                   std::vector<std::shared_ptr<PreparingSpeech>>& preparing) {
  const std::lock_guard lock(mutex_);
  if (waiting.empty()) waiting.swap(jobs_);  // even without memory
  waiting.reserve(waiting.size() + jobs_.size());
  for (auto& job : jobs_) waiting.push_back(std::move(job));
  jobs_.clear();
  preparing.reserve(preparing.size() + preparing_.size());
  for (auto& speech : preparing_) preparing.push_back(std::move(speech));
  preparing_.clear();
  return stop_;
}

}  // namespace shoal::runtime
