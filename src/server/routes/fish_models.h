// Voices as Fish Audio's hosted API has them, where they are called models. (Facts: its OpenAPI document of
// 2026.)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/body/schema.h"
#include "server/http/message.h"
#include "shoal/server_config.h"
#include "shoal/voices.h"

namespace shoal::server {

// What bodies say about a voice; of it the title, the description, the tags and the visibility are kept in
// the voice's note. Fields without an effect are named in `unused`, "name: why".
struct FishModel {
  std::optional<std::string> title, description, visibility;
  std::optional<std::vector<std::string>> tags;
  std::vector<std::string> voices, texts;  // clips and their words
  std::string type = "tts", train_mode = "fast";
  std::vector<std::string> unused;
};

Schema<FishModel> fish_create_schema(const ServerConfig& config);  // POST /model
Schema<FishModel> fish_patch_schema();                             // PATCH /model/{id}

// The clips with their words. One text for several clips is what a client made of a list: it is cut at its
// commas if that gives one for each. Throws BodyError: no clip (invalid_argument), no words (unsupported:
// this server cannot hear), another number of them.
std::vector<ReferenceClip> clips_of(const FishModel& body);

// The note of a voice. Reading one that somebody else wrote, or broke, gives an empty one.
std::string write_fish_note(const FishModel& about);
FishModel read_fish_note(std::string_view note);
// What `change` says, over what `about` says.
FishModel changed(FishModel about, FishModel change);

// A voice of this server: what was told of it, and by whom it was made.
struct FishVoice {
  VoiceInfo info;
  FishModel about;
  bool own = false;  // of a client: it can be changed
};
Value fish_model_value(const FishVoice& voice);

struct FishListQuery {
  int page_size = 10, page_number = 1;
  std::string title, author_id, sort_by = "score";
  std::vector<std::string> tags, languages;
  bool self = false;
};
Schema<FishListQuery> fish_list_schema();
// Names as programs write lists: tag=a&tag=b, tag[]=a, tag[0]=a. Throws BodyError.
FishListQuery read_fish_list_query(const Schema<FishListQuery>& schema, const Request& request);
// {"total", "items"}: those that the query names, newest first if it asks for created_at, else by name.
Value fish_page(const FishListQuery& query, std::vector<FishVoice> voices);

// "2026-01-31T10:20:30Z".
std::string utc_time(int64_t seconds_since_1970);

}  // namespace shoal::server
