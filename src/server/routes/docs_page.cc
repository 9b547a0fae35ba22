#include "server/routes/docs_page.h"

#include <algorithm>
#include <vector>

#include "server/body/value.h"

namespace shoal::server {
namespace {

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Shoal: routes</title>
<style>
:root { --ground: #f6f8f8; --ink: #10222a; --muted: #54666d; --line: #d9e1e3; --accent: #00697a; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #0c1418; --ink: #e4eced; --muted: #91a4aa; --line: #24343a; --accent: #6fd3d6; }
}
body {
  font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  background: var(--ground); color: var(--ink); overflow-wrap: anywhere;
}
h1 { font-size: 1.7rem; font-weight: 600; margin: 0 0 .5rem; }
h2 { margin: 2.5rem 0 0; padding-top: .8rem; border-top: 1px solid var(--line); font-size: 1.1rem; }
code, .method { font-family: ui-monospace, monospace; font-size: .95em; }
.method { font-weight: 700; margin-right: .6em; }
.key { font-size: .8rem; border: 1px solid; border-radius: .8em; padding: 0 .6em; margin-left: .8em; font-weight: 400; white-space: nowrap; }
a { color: var(--accent); }
table { border-collapse: collapse; table-layout: fixed; width: 100%; margin: .5rem 0; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--muted); font-weight: 600; width: 27%; }
th:last-child { width: 46%; }
p { margin: .3rem 0; }
nav { columns: 16rem; margin: 1rem 0; }
nav a { display: block; padding: .1rem 0; text-decoration: none; break-inside: avoid; }
nav a:hover, nav a:focus-visible { text-decoration: underline; }
@media (max-width: 640px) {
  body { margin-top: 1.2rem; }
  nav a { padding: .35rem 0; }
  table, tbody, tr, td { display: block; }
  thead { position: absolute; left: -999px; }
  tr { padding: .45rem 0; border-bottom: 1px solid var(--line); }
  td { padding: 0; border: 0; }
  td:first-child { font-weight: 600; }
  td:nth-child(2) { color: var(--muted); }
}
</style>
</head>
<body>
)";

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string code(std::string_view text) { return "<code>" + escaped(text) + "</code>"; }

const Value& member(const Value& value, std::string_view name) {
  static const Value none;
  const Value* found = value.find(name);
  return found ? *found : none;
}

std::string text_of(const Value& value) {
  const std::string* text = value.as<std::string>();
  return text ? *text : "";
}

const Value::Object& members_of(const Value& value) {
  static const Value::Object none;
  const Value::Object* object = value.as<Value::Object>();
  return object ? *object : none;
}

const Value::Array& items_of(const Value& value) {
  static const Value::Array none;
  const Value::Array* array = value.as<Value::Array>();
  return array ? *array : none;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : ", ") + part;
  return all;
}

std::vector<std::string> names_of(const Value& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : members_of(object)) names.push_back(code(name));
  return names;
}

// As JSON, but 64 for 64.0.
std::string number_or_text(const Value& value) {
  std::string written = write_json(value);
  if (!value.as<std::string>() && written.ends_with(".0")) written.resize(written.size() - 2);
  return written;
}

// "integer, from 1, to 64, default 8"; "string, or object"
std::string kind_of(const Value& schema) {
  std::string forms;
  for (const Value& form : items_of(member(schema, "oneOf")))
    forms += (forms.empty() ? "" : ", or ") + kind_of(form);
  if (!forms.empty()) return forms;
  const Value& type = member(schema, "type");
  std::vector<std::string> parts = {
      escaped(items_of(type).empty() ? text_of(type) : text_of(items_of(type).front()))};
  std::vector<std::string> words;
  for (const Value& word : items_of(member(schema, "enum"))) {
    if (!word.is_null()) words.push_back(code(write_json(word)));
  }
  if (!words.empty()) parts.push_back(joined(words));
  for (const auto& [name, before] : {std::pair("format", ""),
                                     {"minimum", "from "},
                                     {"maximum", "to "},
                                     {"maxItems", "at most "},
                                     {"maxLength", "at most "},
                                     {"default", "default "}}) {
    const Value& value = member(schema, name);
    if (!value.is_null()) parts.push_back(before + code(number_or_text(value)));
  }
  return joined(parts);
}

std::string row(const std::string& name, bool is_required, const Value& schema, const Value& help) {
  return "<tr><td>" + code(name) + (is_required ? " (required)" : "") + "</td><td>" + kind_of(schema) +
         "</td><td>" + escaped(text_of(help)) + "</td></tr>\n";
}

std::string table_of(std::string_view what, const std::string& rows) {
  if (rows.empty()) return "";
  return "<table><thead><tr><th>" + std::string(what) +
         "</th><th>type</th><th>meaning</th></tr></thead><tbody>\n" + rows + "</tbody></table>\n";
}

// Fields of an object, and of the objects in it and in its lists.
void add_rows(std::string& html, const Value& schema, const std::string& before) {
  for (const Value& form : items_of(member(schema, "oneOf"))) add_rows(html, form, before);
  for (const auto& [name, field] : members_of(member(schema, "properties"))) {
    const auto& required = items_of(member(schema, "required"));
    const bool is_required =
        std::ranges::any_of(required, [&](const Value& one) { return text_of(one) == name; });
    html += row(before + name, is_required, field, member(field, "description"));
    add_rows(html, field, before + name + ".");
    add_rows(html, member(field, "items"), before + name + "[].");
  }
}

std::string parameters_of(const Value& operation) {
  std::string rows;
  for (const Value& parameter : items_of(member(operation, "parameters"))) {
    if (text_of(member(parameter, "in")) != "query") continue;
    rows += row("?" + text_of(member(parameter, "name")) + "=", false, member(parameter, "schema"),
                member(parameter, "description"));
  }
  return table_of("query", rows);
}

std::string body_of(const Value& operation) {
  const Value& body = member(operation, "requestBody");
  const Value& content = member(body, "content");
  if (members_of(content).empty()) return "";
  const bool* required = member(body, "required").as<bool>();
  const Value& schema = member(members_of(content).front().second, "schema");
  std::string html = "<p>Body" + std::string(required && !*required ? ", if any: " : ": ") +
                     joined(names_of(content)) + "</p>\n";
  const Value::Array& forms = items_of(member(schema, "oneOf"));
  for (size_t i = 0; i < forms.size(); ++i)
    html += "<p>" + std::string(i == 0 ? "" : "or ") + kind_of(forms[i]) + ": " +
            escaped(text_of(member(forms[i], "description"))) + "</p>\n";
  std::string rows;
  add_rows(rows, schema, "");
  return html + table_of("field", rows);
}

std::string answers_of(const Value& operation) {
  std::string html;
  for (const auto& [status, answer] : members_of(member(operation, "responses"))) {
    if (status == "default") continue;
    const std::vector<std::string> types = names_of(member(answer, "content"));
    html += "<p>" + code(status) + ": " +
            (types.empty() ? escaped(text_of(member(answer, "description"))) : joined(types)) + "</p>\n";
  }
  return html;
}

std::string key_of(const Value& operation) {
  std::string html;
  for (const Value& scheme : items_of(member(operation, "security"))) {
    for (const auto& [name, scopes] : members_of(scheme))
      html +=
          std::string("<span class=\"key\">") + (name == "adminKey" ? "admin key" : "API key") + "</span>";
  }
  return html;
}

}  // namespace

std::string docs_page(std::string_view openapi) {
  const Value document = read_json(openapi);
  std::string contents, sections;
  for (const auto& [path, methods] : members_of(member(document, "paths"))) {
    for (const auto& [method, operation] : members_of(methods)) {
      const std::string id = escaped(text_of(member(operation, "operationId")));
      std::string name = method;
      std::ranges::transform(name, name.begin(),
                             [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
      const std::string title = "<span class=\"method\">" + escaped(name) + "</span>" + code(path);
      contents += "<a href=\"#" + id + "\">" + title + "</a>\n";
      sections += "<section>\n<h2 id=\"" + id + "\">" + title + key_of(operation) + "</h2>\n<p>" +
                  escaped(text_of(member(operation, "summary"))) + "</p>\n" + parameters_of(operation) +
                  body_of(operation) + answers_of(operation) + "</section>\n";
    }
  }
  const Value& info = member(document, "info");
  return std::string(kHead) + "<h1>" + escaped(text_of(member(info, "title"))) + " " +
         escaped(text_of(member(info, "version"))) + "</h1>\n<p>" +
         escaped(text_of(member(info, "description"))) +
         " For programs: <a href=\"/openapi.json\">/openapi.json</a></p>\n<nav>\n" + contents + "</nav>\n" +
         sections + "</body>\n</html>\n";
}

}  // namespace shoal::server
