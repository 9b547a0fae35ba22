#include "server/keeper.h"

#include <span>

#include "base/error.h"
#include "base/log.h"
#include "server/idle_memory.h"

namespace shoal::server {
namespace {

constexpr std::chrono::milliseconds kRound{50};  // between looks at the models

}  // namespace

Keeper::Keeper(const Models& models, std::chrono::seconds ttl)
    : models_(models), ttl_(ttl), thread_([this] { run(); }) {}

Keeper::~Keeper() {
  stop();
  thread_.join();
}

void Keeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_one();
}

void Keeper::run() {
  while (true) {
    const auto held = models_.held();
    const std::span<const ServedModel> models = models_.all();
    for (const ServedModel& model : models) {
      if (model.engine->is_wanted()) load(model);
      if (models.size() == 1 || !model.engine->unload(ttl_)) continue;
      give_back_free_memory();
      log(LogLevel::info, "unloaded: ", model.name, ", which nobody used for ", ttl_.count(), " s");
    }
    std::unique_lock lock(mutex_);
    if (stopped_.wait_for(lock, kRound, [this] { return stopping_; })) return;
  }
}

void Keeper::load(const ServedModel& model) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    loading_ = model.engine;
  }
  try {
    model.engine->start();
    log(LogLevel::info, "loaded again: ", model.name, ", ", model.engine->health().last_load_s, " s");
  } catch (const std::exception& error) {
    log(LogLevel::error, "loading ", model.name, " again: ", error.what());
  }
  loading_ = nullptr;
}

}  // namespace shoal::server
