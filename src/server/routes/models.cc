#include "server/routes/models.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "server/body/value.h"

namespace shoal::server {
namespace {

constexpr std::array<std::string_view, 3> kOpenAiModels = {"tts-1", "tts-1-hd", "gpt-4o-mini-tts"};
constexpr std::string_view kKokoro = "kokoro";

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

Models::Models(std::vector<ServedModel> models) : models_(std::move(models)) {
  CHECK(!models_.empty(), "a server without a model");
  for (const ServedModel& model : models_)
    CHECK(std::ranges::count(models_, model.name, &ServedModel::name) == 1, "two models called ", model.name);
}

const ServedModel* Models::find(std::string_view name) const {
  const auto found = std::ranges::find(models_, name, &ServedModel::name);
  if (found != models_.end()) return &*found;
  if (std::ranges::count(kOpenAiModels, name) > 0) return &first();
  if (name != kKokoro) return nullptr;
  return first_with(models_, [](const ModelTraits& traits) { return traits.family == kKokoro; });
}

const ServedModel& Models::named(std::string_view name) const {
  if (name.empty()) return first();
  const ServedModel* found = find(name);
  if (!found) throw BodyError(ErrorCode::not_found, "model", "there is none of that name; see /v1/models");
  return *found;
}

const ServedModel* Models::find_with(bool ModelTraits::* ability) const {
  return first_with(models_, [ability](const ModelTraits& traits) { return traits.*ability; });
}

const ServedModel& Models::with_references(std::string_view name) const {
  if (!name.empty() || models_.size() == 1) return named(name);
  const ServedModel* found = find_with(&ModelTraits::references);
  return found ? *found : first();
}

}  // namespace shoal::server
