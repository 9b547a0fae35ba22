#include "server/routes/openapi.h"

#include <cctype>
#include <gtest/gtest.h>
#include <set>

#include "server/body/value.h"
#include "settings/table.h"

namespace shoal::server {
namespace {

const Value* node_at(const Value& value, const std::vector<std::string>& path) {
  const Value* found = &value;
  for (const std::string& name : path) {
    found = found ? found->find(name) : nullptr;
  }
  return found;
}

std::string node_text(const Value& value, const std::vector<std::string>& path) {
  const Value* found = node_at(value, path);
  return found && found->as<std::string>() ? *found->as<std::string>() : "";
}

std::vector<Route> whole_table(const ServerConfig& config) {
  std::vector<Route> table;
  for (const auto part : {openai_routes, kokoro_routes, fish_routes, fish_model_routes, fish_live_routes,
                          eleven_routes, realtime_routes, reference_routes, codec_routes, batch_routes,
                          live_routes, operator_routes, sagemaker_routes, kserve_routes, page_routes}) {
    for (Route& route : part(config)) table.push_back(std::move(route));
  }
  return table;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

TEST(OpenApi, DescribesExactlyTheRoutesAndFieldsOfTheTable) {
  const ServerConfig config{.admin_key = "admin"};
  const std::vector<Route> table = whole_table(config);
  const Value document = read_json(openapi_document(table, config));
  EXPECT_EQ(node_text(document, {"openapi"}), "3.1.0");
  size_t operations = 0;
  for (const auto& [path, methods] : *node_at(document, {"paths"})->as<Value::Object>())
    operations += methods.as<Value::Object>()->size();
  EXPECT_EQ(operations, table.size());
  std::set<std::string> ids;
  for (const Route& route : table) {
    const Value* operation = node_at(document, {"paths", route.path, lower(route.method)});
    ASSERT_TRUE(operation) << route.method << ' ' << route.path;
    EXPECT_EQ(node_text(*operation, {"summary"}), route.doc.summary);
    EXPECT_NE(route.doc.summary, "") << route.path;
    EXPECT_TRUE(ids.insert(node_text(*operation, {"operationId"})).second) << route.path;
    EXPECT_TRUE(node_at(*operation, {"responses", route.converse ? "101" : "200"})) << route.path;
    for (const std::string& type : route.doc.body_types) {
      EXPECT_EQ(*node_at(*operation, {"requestBody", "required"}), Value{route.doc.body_required});
      const Value* schema = node_at(*operation, {"requestBody", "content", type, "schema"});
      ASSERT_TRUE(schema) << route.path;
      if (route.doc.body.empty()) continue;  // ignored
      if (const Value* forms = node_at(*schema, {"oneOf"})) {
        EXPECT_EQ(forms->as<Value::Array>()->size(), 1 + route.doc.body_forms.size()) << route.path;
        schema = &forms->as<Value::Array>()->front();
      }
      const Value* properties = node_at(*schema, {"properties"});
      ASSERT_TRUE(properties) << route.path;
      EXPECT_EQ(properties->as<Value::Object>()->size(), route.doc.body.size());
      for (const FieldDoc& field : route.doc.body) {
        EXPECT_EQ(node_text(*properties, {field.name, "description"}), field.help);
        EXPECT_NE(field.help, "") << route.path << ' ' << field.name;
      }
    }
  }
}

TEST(OpenApi, DescribesParametersFormsAndListsOfPlainValues) {
  const FieldDoc name{.name = "name", .type = "string", .help = "A name.", .required = true};
  FieldDoc voice = name;
  voice.forms = {{.name = "voice", .type = "object", .help = "The same.", .required = true, .items = {name}},
                 {.name = "voice", .type = "array", .help = "Some.", .required = true, .item = {name}}};
  const Route route{.method = "POST",
                    .path = "/x",
                    .doc = {.summary = "X.",
                            .body = {voice},
                            .body_forms = {name},
                            .body_types = {"application/json"},
                            .body_required = false,
                            .query = {{.name = "q", .type = "boolean", .help = "Asks."}}}};
  const Value document = read_json(openapi_document({route}, ServerConfig()));
  const Value& operation = *node_at(document, {"paths", "/x", "post"});
  const Value& parameter = node_at(operation, {"parameters"})->as<Value::Array>()->front();
  EXPECT_EQ(node_text(parameter, {"name"}), "q");
  EXPECT_EQ(node_text(parameter, {"in"}), "query");
  EXPECT_EQ(*node_at(parameter, {"required"}), Value{false});
  EXPECT_EQ(node_text(parameter, {"schema", "type"}), "boolean") << "an address has no null";
  const Value& body = *node_at(operation, {"requestBody", "content", "application/json", "schema", "oneOf"});
  EXPECT_EQ(node_text(body.as<Value::Array>()->at(1), {"type"}), "string");
  const Value& forms = *node_at(body.as<Value::Array>()->front(), {"properties", "name", "oneOf"});
  EXPECT_EQ(node_text(forms.as<Value::Array>()->at(0), {"type"}), "string");
  EXPECT_EQ(node_text(forms.as<Value::Array>()->at(1), {"properties", "name", "type"}), "string");
  EXPECT_EQ(node_text(forms.as<Value::Array>()->at(2), {"items", "type"}), "string");
}

TEST(OpenApi, FieldsOfAReloadHaveTheRangesOfTheSettings) {
  const ServerConfig config{.admin_key = "admin"};
  const Value document = read_json(openapi_document(operator_routes(config), config));
  const Value& schema = *node_at(document, {"paths", "/v1/admin/reload", "post", "requestBody", "content",
                                            "application/json", "schema"});
  for (const char* key : {"max_batch_size", "max_queue", "kv_memory_mb"}) {
    const settings::Row& row = *settings::find_row(key);
    EXPECT_EQ(*node_at(schema, {"properties", key, "minimum"}), Value{row.allowed.low}) << key;
    EXPECT_EQ(*node_at(schema, {"properties", key, "maximum"}), Value{row.allowed.high}) << key;
  }
}

TEST(OpenApi, AnInvocationAcceptsTheFieldsOfBothRoutes) {
  const Value document = read_json(openapi_document(sagemaker_routes({}), ServerConfig()));
  const Value& fields = *node_at(document, {"paths", "/invocations", "post", "requestBody", "content",
                                            "application/json", "schema", "properties"});
  EXPECT_FALSE(node_at(fields, {"seed", "minimum"})) << "negative to /v1/tts";
  EXPECT_EQ(*node_at(fields, {"temperature", "maximum"}), Value{2.0});
  EXPECT_EQ(*node_at(fields, {"temperature", "minimum"}), Value{0.0});
  EXPECT_EQ(node_at(fields, {"format", "enum"})->as<Value::Array>()->size(), 9u) << "eight, and null";
}

TEST(OpenApi, DisabledRoutesAreNotListed) {
  ServerConfig config;
  config.metrics = false;
  config.web_page = false;
  const Value document = read_json(openapi_document(whole_table(config), config));
  for (const std::string path : {"/v1/admin/reload", "/metrics", "/"})
    EXPECT_FALSE(node_at(document, {"paths", path})) << path;
}

TEST(OpenApi, FieldsCarryTheirLimits) {
  FieldDoc number{
      .name = "n", .type = "integer", .help = "A number.", .minimum = 1, .maximum = 8, .default_value = "2"};
  FieldDoc word{.name = "w", .type = "string", .help = "A word.", .required = true, .one_of = {"a", "b"}};
  FieldDoc list{.name = "l", .type = "array", .help = "A list.", .max_length = 3, .items = {word}};
  Route route{.method = "POST",
              .path = "/x/{id}",
              .errors = ErrorStyle::fish,
              .doc = {.summary = "X.", .body = {number, word, list}, .body_types = {"application/json"}}};
  const Value document = read_json(openapi_document({route}, ServerConfig{.api_key = "k"}));
  const Value& operation = *node_at(document, {"paths", "/x/{id}", "post"});
  const Value& schema = *node_at(operation, {"requestBody", "content", "application/json", "schema"});
  EXPECT_EQ(*node_at(schema, {"additionalProperties"}), Value{false});
  EXPECT_EQ(*node_at(schema, {"required"}), (Value{Value::Array{{std::string("w")}}}));
  EXPECT_EQ(*node_at(schema, {"properties", "n", "minimum"}), Value{1.0});
  EXPECT_EQ(*node_at(schema, {"properties", "n", "maximum"}), Value{8.0});
  EXPECT_EQ(*node_at(schema, {"properties", "n", "default"}), Value{int64_t{2}});
  EXPECT_EQ(*node_at(schema, {"properties", "w", "enum"}),
            (Value{Value::Array{{std::string("a")}, {std::string("b")}}}));
  EXPECT_EQ(*node_at(schema, {"properties", "l", "maxItems"}), Value{int64_t{3}});
  EXPECT_TRUE(node_at(schema, {"properties", "l", "items", "properties", "w"}));
  const Value& parameter = node_at(operation, {"parameters"})->as<Value::Array>()->front();
  EXPECT_EQ(node_text(parameter, {"name"}), "id");
  EXPECT_EQ(node_text(parameter, {"in"}), "path");
  EXPECT_EQ(node_text(operation, {"responses", "default", "$ref"}), "#/components/responses/FishError");
  EXPECT_FALSE(node_at(operation, {"security"})->as<Value::Array>()->empty());
}

TEST(OpenApi, OpenRoutesAskForNoKey) {
  const Route route{.method = "GET", .path = "/x", .doc = {.summary = "X."}};
  const Value document = read_json(openapi_document({route}, ServerConfig{}));
  EXPECT_TRUE(node_at(document, {"paths", "/x", "get", "security"})->as<Value::Array>()->empty());
}

}  // namespace
}  // namespace shoal::server
