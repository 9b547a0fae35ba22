// Random bodies of a route, made from its own table of fields, and what may answer them.
#pragma once

#include <algorithm>
#include <random>

#include "server/routes/speech_testing.h"

namespace shoal::server::testing {

// Bodies of which nothing or one field is wrong.
class RandomBodies {
 public:
  struct Body {
    Value::Object fields;
    std::string wrong;  // the field's name
  };
  // usual: what every body has, unless that is made wrong.
  RandomBodies(std::vector<FieldDoc> docs, Value::Object usual, uint32_t seed)
      : docs_(std::move(docs)), usual_(std::move(usual)), random_(seed) {
    // Deadlines depend on the machine.
    std::erase_if(docs_, [](const FieldDoc& doc) { return doc.name == "timeout"; });
  }

  Body next() {
    Body body{.fields = usual_, .wrong = {}};
    if (random_() % 2) {
      spoil(body);  // alone: which of two wrong fields is named is nobody's promise
      return body;
    }
    for (uint32_t n = random_() % 4; n > 0; --n) add_valid(body.fields, any());
    return body;
  }

 private:
  const FieldDoc& any() { return docs_[random_() % docs_.size()]; }
  static void set(Value::Object& fields, const std::string& name, Value value) {
    const auto same = [&](const auto& member) { return member.first == name; };
    std::erase_if(fields, same);
    fields.emplace_back(name, std::move(value));
  }
  // Nothing for kinds of fields of which the table does not tell what they take.
  void add_valid(Value::Object& fields, const FieldDoc& doc) {
    const auto same = [&](const auto& member) { return member.first == doc.name; };
    if (std::ranges::any_of(fields, same)) return;
    const double low = doc.minimum.value_or(0), high = doc.maximum.value_or(low + 1000);
    const double number = low + (high - low) * (static_cast<double>(random_() % 5) / 4);
    if (!doc.one_of.empty())
      set(fields, doc.name, {doc.one_of[random_() % doc.one_of.size()]});
    else if (doc.type == "boolean")
      set(fields, doc.name, {random_() % 2 == 0});
    else if (doc.type == "integer" && doc.minimum)
      set(fields, doc.name, {static_cast<int64_t>(number)});
    else if (doc.type == "number" && doc.minimum)
      set(fields, doc.name, {number});
  }
  void spoil(Body& body) {
    const FieldDoc& doc = any();
    const bool numeric = doc.type == "number" || doc.type == "integer";
    body.wrong = doc.name;
    if (doc.help.find("no effect") != std::string::npos || random_() % 4 == 0) {
      body.wrong = "xyzzy";
      set(body.fields, body.wrong, {true});
    } else if (numeric && doc.maximum && random_() % 2) {
      set(body.fields, doc.name, {*doc.maximum * 2 + 1});
    } else if (numeric || doc.type == "boolean") {
      set(body.fields, doc.name, {std::string("maybe")});
    } else if (!doc.one_of.empty()) {
      set(body.fields, doc.name, {std::string("no such word")});
    } else {
      set(body.fields, doc.name, {int64_t{7}});
    }
  }

  std::vector<FieldDoc> docs_;
  const Value::Object usual_;
  std::mt19937 random_;
};

inline const std::vector<FieldDoc>& body_docs(const std::vector<Route>& routes, const std::string& path) {
  return std::ranges::find(routes, path, &Route::path)->doc.body;
}

// Asks `calls` times. A wrong field is refused by name, with a status of 4xx; any other body is answered with
// sound that decodes, or refused too, as two fields may not fit each other; the same
// body always alike.
// json_of: the body as it is sent.
template <typename JsonOf>
void expect_answers(RouteBench& bench, const std::string& path, RandomBodies bodies, int calls,
                    const JsonOf& json_of) {
  int spoken = 0, refused = 0;
  for (int i = 0; i < calls; ++i) {
    const RandomBodies::Body body = bodies.next();
    const std::string json = write_json(json_of(body.fields));
    SCOPED_TRACE(path + " " + json);
    const Answered answer = bench.ask(json_request(path, json));
    if (answer.status != 200) {
      ++refused;
      EXPECT_TRUE(answer.status >= 400 && answer.status < 500) << answer.status << " " << answer.body();
      EXPECT_TRUE(read_json(answer.body()).as<Value::Object>());
      EXPECT_NE(answer.body().find(body.wrong), std::string::npos) << answer.body();
      continue;
    }
    ++spoken;
    EXPECT_EQ(body.wrong, "") << "was answered";
    const std::string sound = answer.body();
    EXPECT_TRUE(answer.whole && !sound.empty());
    if (sound.starts_with("RIFF") || sound.starts_with("fLaC")) {
      EXPECT_FALSE(decoded(sound).empty());
    }
    const bool bare =
        answer.content_type.find("json") == std::string::npos;  // else it tells how long it took
    if (bare && spoken % 8 == 0) {
      EXPECT_TRUE(bench.ask(json_request(path, json)).body() == sound) << "another sound";
    }
  }
  EXPECT_GT(spoken, calls / 5);
  EXPECT_GT(refused, calls / 5);
}

inline void expect_answers(RouteBench& bench, const std::string& path, RandomBodies bodies, int calls = 200) {
  expect_answers(bench, path, std::move(bodies), calls,
                 [](const Value::Object& fields) { return Value{fields}; });
}

}  // namespace shoal::server::testing
