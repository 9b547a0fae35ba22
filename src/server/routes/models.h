// The models that this server speaks with.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/engine.h"

namespace shoal::server {

struct ServedModel {
  std::string name;  // in /v1/models, and in a request's `model`
  Engine* engine = nullptr;
};

struct ModelAlias {
  std::string name;
  const ServedModel* model = nullptr;
};

// Immutable. Questions about a model's family need its engine to run: until then they throw
// Error(unavailable).
class Models {
 public:
  // At least one, each with its own name.
  explicit Models(std::vector<ServedModel> models);

  std::span<const ServedModel> all() const { return models_; }
  // The model of requests that name none.
  const ServedModel& first() const { return models_.front(); }
  // The model of a name. tts-1, tts-1-hd and gpt-4o-mini-tts, the names that OpenAI's clients know, mean the
  // first model; "kokoro", unless a model has that name, means the first of that family. A date after these
  // names, in OpenAI's notation
  // (-2025-12-15, -1106), is ignored. Null: there is none.
  const ServedModel* find(std::string_view name) const;
  // The same; an empty name: the first. Throws BodyError(not_found) of `model`.
  const ServedModel& named(std::string_view name) const;
  // Those names without a date, unless a model has the name. Whether a model is "kokoro" is unknown while it
  // is loading.
  std::vector<ModelAlias> aliases() const;

  // The first that understands what the caller needs; null: there is none.
  const ServedModel* find_with(bool ModelTraits::* ability) const;
  // The model of a request for voices that can be added and for codes: the named one, else the first that
  // follows clips, else the first, which then says why not.
  const ServedModel& with_references(std::string_view name) const;

 private:
  const std::vector<ServedModel> models_;
};

}  // namespace shoal::server
