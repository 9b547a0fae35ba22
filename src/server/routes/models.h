// The models that this server speaks with.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/engine.h"

namespace shoal::server {

struct ServedModel {
  std::string name;  // in /v1/models, and in a request's `model`
  Engine* engine = nullptr;
  // Of a model that came by a request: the engine, and the folder as the request had it. Others are there
  // from start to end.
  std::shared_ptr<Engine> owner = nullptr;
  std::string url = {};
};

struct ModelAlias {
  std::string name;
  const ServedModel* model = nullptr;
};

// Thread-safe. Questions about a model's family need its engine to run: until then they throw
// Error(unavailable).
class Models {
 public:
  // At least one, each with its own name. These stay.
  explicit Models(std::vector<ServedModel> models);
  Models(const Models&) = delete;
  Models& operator=(const Models&) = delete;

  // As long as the result lives, so does everything that this object has told of since: models, their names
  // and engines. The router holds one for each request. Two results differ if the list has changed between
  // them.
  std::shared_ptr<const void> held() const;
  // Adds a model behind the others. Returns false if there is one of its name.
  bool add(ServedModel model);
  // Takes out a model that came by add(), which from then on no request finds. Null: there is none.
  std::shared_ptr<Engine> remove(std::string_view name);
  // Engines of add() that live, in the list or not: requests may be inside.
  std::vector<std::shared_ptr<Engine>> added() const;

  std::span<const ServedModel> all() const;
  // The model of requests that name none.
  const ServedModel& first() const { return all().front(); }
  // The model of a name. tts-1, tts-1-hd and gpt-4o-mini-tts, the names that OpenAI's clients know, mean the
  // first model; "kokoro", unless a model has that name, means the first of that family. A date after these
  // names, in OpenAI's notation
  // (-2025-12-15, -1106), is ignored. Null: there is none.
  const ServedModel* find(std::string_view name) const;
  // Only of that name. Null: there is none.
  const ServedModel* find_exact(std::string_view name) const;
  // As find(); an empty name: the first. Throws BodyError(not_found) of `model`.
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
  // Each keeps those after it alive: a request sees at most these.
  struct List {
    explicit List(std::vector<ServedModel> all) : models(std::move(all)) {}
    ~List();
    List(const List&) = delete;
    List& operator=(const List&) = delete;
    std::vector<ServedModel> models;
    std::shared_ptr<List> next;  // written once, under mutex_
  };

  void replace(std::vector<ServedModel> models);  // under mutex_

  mutable std::mutex mutex_;
  std::shared_ptr<List> current_;
  std::vector<std::weak_ptr<Engine>> added_;
};

}  // namespace shoal::server
