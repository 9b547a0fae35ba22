#include "server/routes/openapi.h"

#include <algorithm>
#include <cctype>

#include "base/version.h"

namespace shoal::server {
namespace {

using Object = Value::Object;
using Array = Value::Array;

Value text_value(std::string_view words) { return {std::string(words)}; }
Value reference(std::string_view name) {
  return {Object{{"$ref", text_value("#/components/" + std::string(name))}}};
}

Value schema_of(const FieldDoc& field);

// An object with these fields and no others.
Value object_schema(const std::vector<FieldDoc>& fields) {
  Object properties;
  Array required;
  for (const FieldDoc& field : fields) {
    properties.emplace_back(field.name, schema_of(field));
    if (field.required) required.push_back(text_value(field.name));
  }
  Object schema{
      {"type", text_value("object")}, {"properties", {properties}}, {"additionalProperties", {false}}};
  if (!required.empty()) schema.emplace_back("required", Value{required});
  return {schema};
}

// Absence and null mean the same for every field, so every optional field may be null.
Value type_of(const FieldDoc& field) {
  if (field.required) return text_value(field.type);
  return {Array{text_value(field.type), text_value("null")}};
}

Value forms_of(const Value& first, const std::vector<FieldDoc>& others) {
  Array forms{first};
  for (const FieldDoc& other : others) forms.push_back(schema_of(other));
  return {Object{{"oneOf", {std::move(forms)}}}};
}

Value schema_of_forms(const FieldDoc& field) {
  FieldDoc first = field;
  first.forms.clear();
  Value schema = forms_of(schema_of(first), field.forms);
  std::get<Object>(schema.data).emplace_back("description", text_value(field.help));
  return schema;
}

Value schema_of(const FieldDoc& field) {
  if (!field.forms.empty()) return schema_of_forms(field);
  Object schema{{"type", type_of(field)}, {"description", text_value(field.help)}};
  if (!field.format.empty()) schema.emplace_back("format", text_value(field.format));
  if (field.minimum) schema.emplace_back("minimum", Value{*field.minimum});
  if (field.maximum) schema.emplace_back("maximum", Value{*field.maximum});
  if (field.max_length)
    schema.emplace_back(field.type == "array" ? "maxItems" : "maxLength", Value{*field.max_length});
  if (!field.one_of.empty()) {
    Array words;
    for (const std::string& word : field.one_of) words.push_back(text_value(word));
    if (!field.required) words.push_back({nullptr});
    schema.emplace_back("enum", Value{words});
  }
  if (!field.default_value.empty()) schema.emplace_back("default", read_json(field.default_value));
  if (!field.item.empty()) schema.emplace_back("items", schema_of(field.item.front()));
  if (field.items.empty()) return {schema};
  const Value object = object_schema(field.items);
  if (field.type == "array")
    schema.emplace_back("items", object);
  else
    for (const auto& [name, value] : *object.as<Object>())
      if (name != "type") schema.emplace_back(name, value);
  return {schema};
}

Value parameter_of(const FieldDoc& field, std::string_view in) {
  FieldDoc value = field;  // a query has no null
  value.required = true;
  return {Object{{"name", text_value(field.name)},
                 {"in", text_value(in)},
                 {"required", {field.required}},
                 {"description", text_value(field.help)},
                 {"schema", schema_of(value)}}};
}

// The parameters of the path and of the query.
Array parameters_of(const Route& route) {
  Array parameters;
  const size_t brace = route.path.find('{');
  if (brace != std::string::npos) {
    parameters.push_back(parameter_of({.name = route.path.substr(brace + 1, route.path.find('}') - brace - 1),
                                       .type = "string",
                                       .help = "a name, percent-encoded",
                                       .required = true},
                                      "path"));
  }
  for (const FieldDoc& field : route.doc.query) parameters.push_back(parameter_of(field, "query"));
  return parameters;
}

Value content_of(const std::vector<std::string>& media_types, const Value& schema) {
  Object content;
  for (const std::string& type : media_types) content.emplace_back(type, Value{Object{{"schema", schema}}});
  return {content};
}

// Only JSON answers have a shape that a schema can say; all others are bytes.
Value answer_content(const std::vector<std::string>& media_types) {
  Object content;
  for (const std::string& type : media_types) {
    Object media;
    if (type == "application/json")
      media.emplace_back("schema", Value{Object{{"type", text_value("object")}}});
    content.emplace_back(type, Value{media});
  }
  return {content};
}

std::string_view error_name(ErrorStyle style) {
  switch (style) {
    case ErrorStyle::openai:
      return "OpenAiError";
    case ErrorStyle::fish:
      return "FishError";
    case ErrorStyle::kokoro:
      return "KokoroError";
    case ErrorStyle::elevenlabs:
      return "ElevenLabsError";
    case ErrorStyle::kserve:
      return "KServeError";
    case ErrorStyle::plain:
      break;
  }
  return "Error";
}

Value responses_of(const Route& route) {
  Object responses;
  if (route.converse) {
    responses.emplace_back(
        "101", Value{Object{{"description", text_value("the WebSocket is open (docs/LIVE.md)")}}});
  } else {
    Object ok{{"description", text_value("done")}};
    if (!route.doc.answer_types.empty()) ok.emplace_back("content", answer_content(route.doc.answer_types));
    responses.emplace_back("200", Value{ok});
  }
  responses.emplace_back("default", reference("responses/" + std::string(error_name(route.errors))));
  return {responses};
}

Value body_of(const RouteDoc& doc) {
  if (doc.body.empty()) return {Object{}};  // anything
  Value object = object_schema(doc.body);
  if (doc.body_forms.empty()) return object;
  std::get<Object>(object.data).emplace_back("description", text_value("an object with these fields"));
  return forms_of(object, doc.body_forms);
}

// "POST /v1/audio/speech" -> "post_v1_audio_speech".
std::string operation_id(const Route& route) {
  std::string id = route.method + route.path;
  for (char& c : id)
    c = std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(c)) : '_';
  while (id.ends_with('_')) id.pop_back();
  return id;
}

Value operation_of(const Route& route, bool has_keys) {
  Object operation{{"operationId", text_value(operation_id(route))},
                   {"summary", text_value(route.doc.summary)}};
  Array parameters = parameters_of(route);
  if (!parameters.empty()) operation.emplace_back("parameters", Value{std::move(parameters)});
  if (!route.doc.body_types.empty()) {
    operation.emplace_back("requestBody",
                           Value{Object{{"required", {route.doc.body_required}},
                                        {"content", content_of(route.doc.body_types, body_of(route.doc))}}});
  }
  operation.emplace_back("responses", responses_of(route));
  const bool needs_key = route.access == Access::admin || (route.access == Access::client && has_keys);
  Array security;
  if (needs_key)
    security.push_back({Object{{route.access == Access::admin ? "adminKey" : "apiKey", {Array{}}}}});
  operation.emplace_back("security", Value{security});
  return {operation};
}

Value property(std::string_view type) { return {Object{{"type", text_value(type)}}}; }

Value error_response_of(const Object& properties) {
  const Value schema{Object{{"type", text_value("object")}, {"properties", {properties}}}};
  return {Object{{"description", text_value("refused, or failed before the answer began")},
                 {"content", content_of({"application/json"}, schema)}}};
}

Value components() {
  const Value optional_text{Object{{"type", {Array{text_value("string"), text_value("null")}}}}};
  const Value openai{Object{{"type", text_value("object")},
                            {"properties",
                             {Object{{"message", property("string")},
                                     {"type", property("string")},
                                     {"param", optional_text},
                                     {"code", optional_text},
                                     {"request_id", property("string")}}}}}};
  const Value plain{Object{{"type", text_value("object")},
                           {"properties",
                            {Object{{"code", property("string")},
                                    {"message", property("string")},
                                    {"request_id", property("string")}}}}}};
  const Value kokoro{Object{{"type", text_value("object")},
                            {"properties",
                             {Object{{"error", property("string")},
                                     {"message", property("string")},
                                     {"type", property("string")},
                                     {"param", optional_text},
                                     {"request_id", property("string")}}}}}};
  const Value eleven{
      Object{{"description", text_value("{status, message}, or of a 422 a list of {loc, msg, type}")}}};
  const Value bearer{Object{{"type", text_value("http")}, {"scheme", text_value("bearer")}}};
  return {Object{{"responses",
                  {Object{{"OpenAiError", error_response_of({{"error", openai}})},
                          {"FishError", error_response_of({{"statusCode", property("integer")},
                                                           {"message", property("string")},
                                                           {"error", property("string")},
                                                           {"request_id", property("string")}})},
                          {"KokoroError", error_response_of({{"detail", kokoro}})},
                          {"ElevenLabsError", error_response_of({{"detail", eleven}})},
                          {"KServeError", error_response_of({{"error", property("string")}})},
                          {"Error", error_response_of({{"error", plain}})}}}},
                 {"securitySchemes", {Object{{"apiKey", bearer}, {"adminKey", bearer}}}}}};
}

}  // namespace

std::string openapi_document(const std::vector<Route>& routes, const ServerConfig& config) {
  const bool has_keys = !config.api_key.empty() || !config.api_key_file.empty();
  const bool has_admin = !config.admin_key.empty() || !config.admin_key_file.empty();
  Object paths;
  for (const Route& route : routes) {
    if (route.access == Access::admin && !has_admin) continue;
    auto path = std::find_if(paths.begin(), paths.end(),
                             [&](const auto& known) { return known.first == route.path; });
    if (path == paths.end()) path = paths.insert(paths.end(), {route.path, Value{Object{}}});
    std::string method = route.method;
    std::transform(method.begin(), method.end(), method.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    std::get<Object>(path->second.data).emplace_back(method, operation_of(route, has_keys));
  }
  const Object info{
      {"title", text_value("Shoal")},
      {"version", text_value(version())},
      {"description",
       text_value("Text to speech: the routes of OpenAI and Fish-Speech clients, and our own.")}};
  return write_json({Object{
      {"openapi", text_value("3.1.0")}, {"info", {info}}, {"paths", {paths}}, {"components", components()}}});
}

}  // namespace shoal::server
