#include "server/routes/fish_models.h"

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "server/body/form_fields.h"
#include "server/body/media_type.h"
#include "server/body/schema_fields.h"

namespace shoal::server {
namespace {

constexpr int64_t kMostTags = 64;
constexpr const char* kOurs = "shoal";  // the author of voices that came with a model
constexpr const char* kNoCover = "this server keeps no images";

// Several, or one text with commas.
template <typename T, typename Tags>
Field<T> tags_field(std::string name, Tags T::* member, std::string help) {
  FieldDoc doc{.name = std::move(name), .type = "array", .help = std::move(help), .max_length = kMostTags};
  doc.item = {{.type = "string"}};
  return {std::move(doc), [member](const Value& value, const std::string& where, T& into) {
            std::vector<std::string> tags;
            const auto take = [&tags](std::string_view list) {
              const auto keep = [&tags](std::string_view tag) {
                if (!tag.empty()) tags.emplace_back(tag);
                return false;
              };
              any_part(list, keep);
            };
            if (value.as<Value::Array>()) {
              for (const Value& one : read_array(value, where, kMostTags)) take(read_text(one, where));
            } else {
              take(read_text(value, where));
            }
            if (tags.size() > static_cast<size_t>(kMostTags))
              throw BodyError(ErrorCode::invalid_argument, where,
                              concat("expected at most ", kMostTags, ", found ", tags.size()));
            into.*member = std::move(tags);
          }};
}

Field<FishModel> title_field() {
  Field<FishModel> field = text("title", &FishModel::title, "a name for people");
  field.read = [read = field.read](const Value& value, const std::string& where, FishModel& into) {
    read(value, where, into);
    if (trimmed(*into.title).empty())
      throw BodyError(ErrorCode::invalid_argument, where, "expected a name, found none");
  };
  return field;
}

std::vector<Field<FishModel>> note_fields() {
  return {title_field(), text("description", &FishModel::description, "what it is"),
          choice("visibility", &FishModel::visibility, {"public", "unlist", "private"},
                 "is kept; every key of this server sees every voice")
              .otherwise("\"public\""),
          tags_field("tags", &FishModel::tags, "words to find it by; in one text with commas between them")};
}

Field<FishModel> cover_field() { return unused<FishModel>("cover_image", "string", kNoCover); }

Field<FishModel> voices_field(int64_t most) {
  FieldDoc doc{.name = "voices",
               .type = "array",
               .help = "clips of the voice: wav, flac, ogg, mp3, aiff; in a form files",
               .max_length = most};
  doc.item = {{.type = "string", .format = "byte"}};
  return repeated(std::move(doc), &FishModel::voices, most, read_bytes);
}

Field<FishModel> texts_field(int64_t most) {
  FieldDoc doc{.name = "texts",
               .type = "array",
               .help = "the words spoken in each; required, because this server writes down no speech",
               .max_length = most};
  doc.item = {{.type = "string"}};
  return repeated(std::move(doc), &FishModel::texts, most, read_text);
}

std::vector<std::string> cut_at_commas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

Value texts_value(const std::vector<std::string>& texts) {
  Value::Array list;
  for (const std::string& one : texts) list.push_back({one});
  return {std::move(list)};
}

// "en-us" -> "en".
std::string language_of(const FishVoice& voice) {
  return voice.info.language.substr(0, voice.info.language.find('-'));
}

std::string author_of(const FishVoice& voice) { return voice.own ? "self" : kOurs; }

bool is_asked_for(const FishListQuery& query, const FishVoice& voice) {
  const FishModel& about = voice.about;
  const std::string title = about.title.value_or(voice.info.name);
  const auto has_tag = [&](const std::string& tag) {
    return about.tags && std::ranges::find(*about.tags, tag) != about.tags->end();
  };
  if (to_lower(title).find(to_lower(query.title)) == std::string::npos) return false;
  if (!std::ranges::all_of(query.tags, has_tag)) return false;
  const std::string author = query.self ? "self" : query.author_id;
  if (!author.empty() && author != author_of(voice)) return false;
  const auto speaks = [&](const std::string& language) {
    return to_lower(language) == language_of(voice) || to_lower(language) == voice.info.language;
  };
  return query.languages.empty() || std::ranges::any_of(query.languages, speaks);
}

}  // namespace

Schema<FishModel> fish_patch_schema() {
  std::vector<Field<FishModel>> fields = note_fields();
  fields.push_back(cover_field());
  return Schema<FishModel>(std::move(fields));
}

Schema<FishModel> fish_create_schema(const ServerConfig& config) {
  std::vector<Field<FishModel>> fields = note_fields();
  fields.front() = std::move(fields.front()).required();
  fields.push_back(cover_field());
  fields.push_back(voices_field(config.max_references).required());
  fields.push_back(texts_field(config.max_references));
  fields.push_back(choice("type", &FishModel::type, {"tts"}, "text to speech").otherwise("\"tts\""));
  fields.push_back(
      choice("train_mode", &FishModel::train_mode, {"fast"}, "it can speak at once").otherwise("\"fast\""));
  fields.push_back(
      unused<FishModel>("enhance_audio_quality", "boolean", "clips are followed as they are", Value{false}));
  fields.push_back(
      unused<FishModel>("generate_sample", "boolean", "the clips themselves are the samples", Value{false}));
  return Schema<FishModel>(std::move(fields));
}

std::vector<ReferenceClip> clips_of(const FishModel& body) {
  const size_t count = body.voices.size();
  if (count == 0) throw BodyError(ErrorCode::invalid_argument, "voices", "expected at least one clip");
  if (body.texts.empty())
    throw BodyError(ErrorCode::unsupported, "texts",
                    "expected the words spoken in each clip; this server writes down no speech");
  std::vector<std::string> texts = body.texts;
  if (texts.size() == 1 && count > 1) texts = cut_at_commas(texts.front());
  if (texts.size() != count)
    throw BodyError(ErrorCode::invalid_argument, "texts",
                    concat("expected one for each of ", count, " clips, found ", body.texts.size()));
  std::vector<ReferenceClip> clips;
  for (size_t i = 0; i < count; ++i) clips.push_back({.audio = body.voices[i], .text = std::move(texts[i])});
  return clips;
}

std::string write_fish_note(const FishModel& about) {
  Value::Object note;
  const auto add = [&note](const char* name, const std::optional<std::string>& text) {
    if (text) note.emplace_back(name, Value{*text});
  };
  add("title", about.title);
  add("description", about.description);
  add("visibility", about.visibility);
  if (about.tags) note.emplace_back("tags", texts_value(*about.tags));
  return write_json({std::move(note)});
}

FishModel read_fish_note(std::string_view note) {
  static const Schema<FishModel> schema(note_fields());
  if (note.empty()) return {};
  try {
    return schema.read(read_json(note));
  } catch (const BodyError&) {
    return {};
  }
}

FishModel changed(FishModel about, FishModel change) {
  if (change.title) about.title = std::move(change.title);
  if (change.description) about.description = std::move(change.description);
  if (change.visibility) about.visibility = std::move(change.visibility);
  if (change.tags) about.tags = std::move(change.tags);
  return about;
}

Value fish_model_value(const FishVoice& voice) {
  const FishModel& about = voice.about;
  const int64_t none = 0;
  Value::Array samples, languages;
  for (const std::string& words : voice.info.transcripts)
    samples.push_back({Value::Object{{"title", {concat("Clip ", samples.size() + 1)}},
                                     {"text", {words}},
                                     {"task_id", {std::string()}},
                                     {"audio", {std::string()}}}});
  if (!voice.info.language.empty()) languages.push_back({language_of(voice)});
  const std::string author = author_of(voice);
  return {Value::Object{
      {"_id", {voice.info.name}},
      {"type", {std::string("tts")}},
      {"title", {about.title.value_or(voice.info.name)}},
      {"description", {about.description.value_or("")}},
      {"cover_image", {std::string()}},
      {"train_mode", {std::string("fast")}},
      {"state", {std::string("trained")}},
      {"tags", texts_value(about.tags.value_or(std::vector<std::string>()))},
      {"samples", {std::move(samples)}},
      {"created_at", {utc_time(voice.info.added_at_s)}},
      {"updated_at", {utc_time(voice.info.changed_at_s)}},
      {"languages", {std::move(languages)}},
      {"visibility", {about.visibility.value_or("public")}},
      {"lock_visibility", {false}},
      {"like_count", {none}},
      {"mark_count", {none}},
      {"shared_count", {none}},
      {"task_count", {none}},
      {"unliked", {false}},
      {"liked", {false}},
      {"marked", {false}},
      {"author", {Value::Object{{"_id", {author}}, {"nickname", {author}}, {"avatar", {std::string()}}}}}}};
}

Schema<FishListQuery> fish_list_schema() {
  using Q = FishListQuery;
  return {integer("page_size", &Q::page_size, {1, 1000}, "how many").otherwise("10"),
          integer("page_number", &Q::page_number, {1, 1'000'000}, "from 1").otherwise("1"),
          text("title", &Q::title, "part of the title; letters of ASCII in any case"),
          tags_field("tag", &Q::tags, "all of these tags"),
          boolean("self", &Q::self, "only voices that were added").otherwise("false"),
          text("author_id", &Q::author_id,
               "\"self\": added; \"shoal\": came with a model. Of no effect with self=true"),
          tags_field("language", &Q::languages, "one of these: en, fr, ...; of added voices it is unknown"),
          refused<Q>("title_language", "string", "languages of titles are unknown here"),
          choice("sort_by", &Q::sort_by, {"score", "task_count", "created_at"},
                 "created_at: newest first; else by id, because nothing is counted")
              .otherwise("\"score\"")};
}

FishListQuery read_fish_list_query(const Schema<FishListQuery>& schema, const Request& request) {
  Value::Object members;
  for (const auto& [name, value] : request.query) {
    const bool is_list = name.size() > 2 && name.ends_with("[]");
    add_form_field(members, is_list ? name.substr(0, name.size() - 2) : name, Value{value});
  }
  return schema.read(nested_form(std::move(members)));
}

Value fish_page(const FishListQuery& query, std::vector<FishVoice> voices) {
  std::erase_if(voices, [&](const FishVoice& voice) { return !is_asked_for(query, voice); });
  std::ranges::stable_sort(voices, {}, [](const FishVoice& voice) { return voice.info.name; });
  if (query.sort_by == "created_at")
    std::ranges::stable_sort(voices, std::greater<>(),
                             [](const FishVoice& voice) { return voice.info.added_at_s; });
  const size_t size = static_cast<size_t>(query.page_size),
               first = size * (static_cast<size_t>(query.page_number) - 1);
  Value::Array items;
  for (size_t i = first; i < voices.size() && i < first + size; ++i)
    items.push_back(fish_model_value(voices[i]));
  return {Value::Object{{"total", {static_cast<int64_t>(voices.size())}}, {"items", {std::move(items)}}}};
}

std::string utc_time(int64_t seconds_since_1970) {
  const auto time = static_cast<std::time_t>(seconds_since_1970);
  std::tm parts{};
  char text[32] = "";
  if (gmtime_r(&time, &parts)) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace shoal::server
