// Unloads models that nobody uses and loads those that are needed again.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "server/routes/models.h"

namespace shoal::server {

// One thread, so one load at a time.
class Keeper {
 public:
  // models: outlive it. ttl: how long nobody has used one that is unloaded, if there are several.
  Keeper(const Models& models, std::chrono::seconds ttl);
  ~Keeper();  // waits for a load that is under way
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Nothing is loaded or unloaded any more; does not wait for what is under way.
  void stop();
  // The model that is being loaded; null: none. After stop() it can only change to null.
  const Engine* loading() const { return loading_; }

 private:
  void run();
  void load(const ServedModel& model);

  const Models& models_;
  const std::chrono::seconds ttl_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;  // under mutex_
  std::atomic<const Engine*> loading_{nullptr};
  std::thread thread_;  // last
};

}  // namespace shoal::server
