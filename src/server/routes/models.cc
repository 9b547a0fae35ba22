#include "server/routes/models.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "server/body/value.h"
#include "server/routes/unknown_name.h"

namespace shoal::server {
namespace {

constexpr std::array<std::string_view, 3> kOpenAiModels = {"tts-1", "tts-1-hd", "gpt-4o-mini-tts"};
constexpr std::string_view kKokoro = "kokoro";

// Without the date of a version: "tts-1-1106", "gpt-4o-mini-tts-2025-12-15".
std::string_view without_date(std::string_view name) {
  constexpr std::array<std::string_view, 2> kForms = {"-0000-00-00", "-0000"};
  for (const std::string_view form : kForms) {
    if (name.size() <= form.size()) continue;
    const std::string_view end = name.substr(name.size() - form.size());
    const auto fits = [](char c, char pattern) { return pattern == '-' ? c == '-' : c >= '0' && c <= '9'; };
    if (std::ranges::equal(end, form, fits)) return name.substr(0, name.size() - form.size());
  }
  return name;
}

// The first model whose traits fit. One that is being loaded might fit: Error(unavailable) rather than null.
template <typename Fits>
const ServedModel* first_with(std::span<const ServedModel> models, const Fits& fits) {
  std::optional<Error> loading;
  for (const ServedModel& model : models) {
    try {
      if (fits(model.engine->traits())) return &model;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unavailable) throw;
      loading = error;
    }
  }
  if (loading) throw Error(*loading);
  return nullptr;
}

}  // namespace

Models::Models(std::vector<ServedModel> models) : current_(std::make_shared<List>(std::move(models))) {
  CHECK(!all().empty(), "a server without a model");
  for (const ServedModel& model : all())
    CHECK(std::ranges::count(all(), model.name, &ServedModel::name) == 1, "two models called ", model.name);
}

// One after the other: a long chain would need a deep stack.
Models::List::~List() {
  while (next && next.use_count() == 1) {
    std::shared_ptr<List> after = std::move(next->next);
    next = std::move(after);
  }
}

std::shared_ptr<const void> Models::held() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

void Models::replace(std::vector<ServedModel> models) {
  auto list = std::make_shared<List>(std::move(models));
  current_->next = list;
  current_ = std::move(list);
}

bool Models::add(ServedModel model) {
  const std::lock_guard lock(mutex_);
  std::vector<ServedModel> models = current_->models;
  if (std::ranges::count(models, model.name, &ServedModel::name) > 0) return false;
  std::erase_if(added_, [](const auto& engine) { return engine.expired(); });
  added_.push_back(model.owner);
  models.push_back(std::move(model));
  replace(std::move(models));
  return true;
}

std::shared_ptr<Engine> Models::remove(std::string_view name) {
  const std::lock_guard lock(mutex_);
  std::vector<ServedModel> models = current_->models;
  const auto found = std::ranges::find(models, name, &ServedModel::name);
  if (found == models.end() || !found->owner) return nullptr;
  std::shared_ptr<Engine> engine = found->owner;
  models.erase(found);
  replace(std::move(models));
  return engine;
}

std::vector<std::shared_ptr<Engine>> Models::added() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Engine>> engines;
  for (const auto& added : added_)
    if (auto engine = added.lock()) engines.push_back(std::move(engine));
  return engines;
}

std::span<const ServedModel> Models::all() const {
  const std::lock_guard lock(mutex_);
  return current_->models;
}

const ServedModel* Models::find_exact(std::string_view name) const {
  const std::span<const ServedModel> models = all();
  const auto found = std::ranges::find(models, name, &ServedModel::name);
  return found == models.end() ? nullptr : &*found;
}

const ServedModel* Models::find(std::string_view name) const {
  if (const ServedModel* found = find_exact(name)) return found;
  const std::string_view alias = without_date(name);
  if (std::ranges::count(kOpenAiModels, alias) > 0) return &first();
  if (alias != kKokoro) return nullptr;
  return first_with(all(), [](const ModelTraits& traits) { return traits.family == kKokoro; });
}

std::vector<ModelAlias> Models::aliases() const {
  std::vector<ModelAlias> aliases;
  const auto add = [&](std::string_view name) {
    if (find_exact(name)) return;
    try {
      if (const ServedModel* model = find(name)) aliases.push_back({std::string(name), model});
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unavailable) throw;
    }
  };
  for (const std::string_view name : kOpenAiModels) add(name);
  add(kKokoro);
  return aliases;
}

const ServedModel& Models::named(std::string_view name) const {
  if (name.empty()) return first();
  const ServedModel* found = find(name);
  if (found) return *found;
  std::vector<std::string> names;
  for (const ServedModel& model : all()) names.push_back(model.name);
  for (ModelAlias& alias : aliases()) names.push_back(std::move(alias.name));
  throw BodyError(ErrorCode::not_found, "model", none_called(name, names, "/v1/models"));
}

const ServedModel* Models::find_with(bool ModelTraits::* ability) const {
  return first_with(all(), [ability](const ModelTraits& traits) { return traits.*ability; });
}

const ServedModel& Models::with_references(std::string_view name) const {
  if (!name.empty() || all().size() == 1) return named(name);
  const ServedModel* found = find_with(&ModelTraits::references);
  return found ? *found : first();
}

}  // namespace shoal::server
