// Voices as Fish Audio's hosted API has them: what is stored, listed, changed and refused; its wallet.
#include "server/routes/fish_models.h"

#include <fstream>
#include <random>

#include "base/temporary_folder_testing.h"
#include "server/routes/clip_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::array_of;
using testing::bytes_value;
using testing::clip_file;
using testing::get_request;
using testing::member;
using testing::packed_request;
using testing::text_of;
using testing::text_value;

using Parts = std::vector<std::pair<std::string, std::string>>;  // "voices": a file

Request form_request(const std::string& method, const std::string& path, const Parts& parts) {
  Request request = get_request(path);
  request.method = method;
  request.headers.add("Content-Type", "multipart/form-data; boundary=XyZ");
  for (const auto& [name, content] : parts) {
    const bool file = name == "voices" || name == "cover_image";
    request.body += "--XyZ\r\nContent-Disposition: form-data; name=\"" + name + "\"" +
                    (file ? "; filename=\"a.wav\"" : "") + "\r\n\r\n" + content + "\r\n";
  }
  request.body += "--XyZ--\r\n";
  return request;
}

// The engine never runs: voices are there without a model.
class FishModels : public ::testing::Test {
 protected:
  EngineConfig engine_config() const {
    EngineConfig config = testing::built_in_config();
    config.references_dir = folder_.path("voices");
    return config;
  }
  Answered ask(Request request) { return bench_.ask(std::move(request)); }
  Answered add(const Parts& parts) { return ask(form_request("POST", "/model", parts)); }
  std::string added(const std::string& title, const Parts& more = {}) {
    Parts parts = {{"title", title}, {"voices", clip_}, {"texts", "Some words."}};
    parts.insert(parts.end(), more.begin(), more.end());
    const Answered answer = add(parts);
    EXPECT_EQ(answer.status, 201) << answer.body();
    return text_of(read_json(answer.body()), "_id");
  }
  Answered list(std::vector<std::pair<std::string, std::string>> query) {
    Request request = get_request("/model");
    request.query = std::move(query);
    return ask(std::move(request));
  }
  std::vector<std::string> titles(std::vector<std::pair<std::string, std::string>> query) {
    query.emplace_back("self", "true");
    const Answered answer = list(std::move(query));
    EXPECT_EQ(answer.status, 200) << answer.body();
    std::vector<std::string> all;
    const Value page = read_json(answer.body());
    for (const Value& item : array_of(page, "items")) all.push_back(text_of(item, "title"));
    return all;
  }
  Value get(const std::string& id) { return read_json(ask(get_request("/model/" + id)).body()); }
  Answered patch(const std::string& id, const std::string& json) {
    Request request = testing::json_request("/model/" + id, json);
    request.method = "PATCH";
    return ask(std::move(request));
  }
  Answered remove(const std::string& id) {
    Request request = get_request("/model/" + id);
    request.method = "DELETE";
    return ask(std::move(request));
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    if (!std::filesystem::exists(folder_.path("voices"))) return names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path("voices")))
      if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }

  const std::string clip_ = clip_file(1);
  TemporaryFolder folder_;
  Engine engine_{engine_config()};
  testing::RouteBench bench_{fish_model_routes, engine_};
  const size_t fixed_ = engine_.voices().list().size();
};

TEST_F(FishModels, AVoiceIsAddedToldChangedAndDeleted) {
  const Answered answer = add({{"title", "A low hum"},
                               {"voices", clip_},
                               {"voices", clip_file(1.5)},
                               {"texts", "One, two."},
                               {"texts", "Three."},
                               {"tags", "low, hum"},
                               {"description", "It hums."},
                               {"visibility", "private"},
                               {"type", "tts"},
                               {"train_mode", "fast"},
                               {"cover_image", "pixels"},
                               {"enhance_audio_quality", "true"},
                               {"generate_sample", "false"}});
  ASSERT_EQ(answer.status, 201) << answer.body();
  const std::string warnings = answer.header("x-shoal-warnings");
  EXPECT_NE(warnings.find("cover_image"), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("enhance_audio_quality"), std::string::npos) << warnings;
  EXPECT_EQ(warnings.find("generate_sample"), std::string::npos) << warnings;
  const Value told = read_json(answer.body());
  const std::string id = text_of(told, "_id");
  EXPECT_EQ(id.size(), 32u);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos) << id;
  EXPECT_EQ(get(id), told);
  EXPECT_EQ(engine_.voices().get(id).transcripts, (std::vector<std::string>{"One, two.", "Three."}));
  EXPECT_EQ(array_of(told, "tags"), (Value::Array{text_value("low"), text_value("hum")}));
  EXPECT_EQ(text_of(member(told, "author"), "_id"), "self");

  EXPECT_EQ(patch(id, R"({"title":"A moon","tags":["big"],"description":null})").status, 200);
  const Value later = get(id);
  EXPECT_EQ(text_of(later, "title"), "A moon");
  EXPECT_EQ(text_of(later, "description"), "It hums.") << "what a change does not name stays";
  EXPECT_EQ(text_of(later, "visibility"), "private");
  EXPECT_EQ(array_of(later, "tags"), (Value::Array{text_value("big")}));
  EXPECT_EQ(files(), (std::vector<std::string>{"sample100.lab", "sample100.wav", "sample101.lab",
                                               "sample101.wav", "shoal-note.json"}))
      << "nothing unfinished is left";
  EXPECT_EQ(remove(id).status, 200);
  EXPECT_EQ(ask(get_request("/model/" + id)).status, 404);
  EXPECT_EQ(files(), std::vector<std::string>());
}

TEST_F(FishModels, ChangesComeAsFormsMessagePackAndJson) {
  const std::string id = added("A");
  Request text = get_request("/model/" + id);
  text.method = "PATCH";
  text.headers.add("Content-Type", "application/x-www-form-urlencoded");
  text.body = "title=A+%22fish%22&tags=a&tags=b";
  EXPECT_EQ(ask(text).status, 200);
  EXPECT_EQ(text_of(get(id), "title"), "A \"fish\"");
  EXPECT_EQ(array_of(get(id), "tags").size(), 2u);
  EXPECT_EQ(ask(form_request("PATCH", "/model/" + id, {{"title", "B"}, {"cover_image", "x"}})).status, 200);
  EXPECT_EQ(text_of(get(id), "title"), "B");
  const Value packed{Value::Object{{"title", text_value("C")}}};
  EXPECT_EQ(ask(packed_request("PATCH", "/model/" + id, packed)).status, 200);
  EXPECT_EQ(text_of(get(id), "title"), "C");
}

TEST_F(FishModels, ListsArePagedFilteredAndSorted) {
  for (const char* title : {"Red fish", "Blue fish", "Moon"})
    added(title, {{"tags", title[0] == 'M' ? "sky" : "sea,wet"}});
  engine_.voices().add("by name", clip_, "Words.");
  EXPECT_EQ(titles({}).size(), 4u);
  EXPECT_EQ(titles({{"title", "FISH"}}).size(), 2u);
  EXPECT_EQ(titles({{"title", "by n"}}), (std::vector<std::string>{"by name"})) << "no title: its name";
  EXPECT_EQ(titles({{"tag", "sky"}}), (std::vector<std::string>{"Moon"}));
  EXPECT_EQ(titles({{"tag", "sea"}, {"tag", "sky"}}).size(), 0u) << "all of the tags";
  EXPECT_EQ(titles({{"tag[]", "sea"}, {"tag[]", "wet"}}).size(), 2u);
  EXPECT_EQ(titles({{"tag[0]", "sea"}, {"tag[1]", "wet"}}).size(), 2u);
  EXPECT_EQ(titles({{"language", "en"}}).size(), 0u);
  EXPECT_EQ(titles({{"page_size", "3"}, {"page_number", "2"}}).size(), 1u);
  EXPECT_EQ(titles({{"page_size", "3"}, {"page_number", "1000000"}}).size(), 0u);
  EXPECT_EQ(list({{"title_language", "en"}}).status, 400);
  for (const std::pair<std::string, std::string> wrong : {std::pair{"page_size", "0"},
                                                          {"page_number", "0"},
                                                          {"sort_by", "age"},
                                                          {"slef", "true"},
                                                          {"self", "perhaps"}}) {
    const Answered answer = list({wrong});
    EXPECT_EQ(answer.status, 422) << wrong.first;
    EXPECT_NE(answer.body().find(wrong.first), std::string::npos) << answer.body();
  }
  // The newest first: file times have seconds, so that the order is made by hand.
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(48);
  std::filesystem::last_write_time(folder_.path("voices/by name/sample.wav"), old);
  EXPECT_EQ(titles({{"sort_by", "created_at"}}).back(), "by name");
}

TEST_F(FishModels, ANoteThatSomebodyBrokeHidesNoVoice) {
  const std::string id = added("A");
  std::ofstream(folder_.path("voices/" + id + "/shoal-note.json")) << "{";
  EXPECT_EQ(text_of(get(id), "title"), id);
  EXPECT_EQ(titles({}), (std::vector<std::string>{id}));
  std::ofstream(folder_.path("voices/" + id + "/shoal-note.json")) << std::string(70'000, 'x');
  EXPECT_EQ(titles({}), (std::vector<std::string>{id}));
  EXPECT_EQ(patch(id, R"({"title":"B"})").status, 200);
  EXPECT_EQ(titles({}), (std::vector<std::string>{"B"}));
  EXPECT_EQ(patch(id, R"({"description":")" + std::string(70'000, 'x') + "\"}").status, 413);
  EXPECT_EQ(titles({}), (std::vector<std::string>{"B"}));
}

TEST_F(FishModels, AListOfTextsThatAClientJoinedIsCutAtItsCommas) {
  const auto clips = [&](const std::string& text) {
    FishModel body;
    body.voices = {"a", "b"};
    body.texts = {text};
    return clips_of(body);
  };
  EXPECT_EQ(clips("One,two")[1].text, "two");
  EXPECT_THROW(clips("One, two, three"), BodyError);
  EXPECT_THROW(clips("One"), BodyError);
}

TEST_F(FishModels, TheWalletIsFull) {
  const Value credit = read_json(bench_.ask(get_request("/wallet/self/api-credit")).body());
  EXPECT_EQ(text_of(credit, "credit"), "2147483647");
  EXPECT_TRUE(member(credit, "has_free_credit").is_null());
  EXPECT_EQ(text_of(credit, "user_id"), "self");
  const Value package = read_json(bench_.ask(get_request("/wallet/7/package")).body());
  EXPECT_EQ(text_of(package, "user_id"), "7");
  EXPECT_EQ(member(package, "total"), member(package, "balance"));
  EXPECT_EQ(utc_time(1'900'000'000), "2030-03-17T17:46:40Z");
}

TEST_F(FishModels, StrictServersRefuseWhatHasNoEffect) {
  testing::RouteBench strict(fish_model_routes, engine_, {.strict = true});
  const Answered refused = strict.ask(form_request(
      "POST", "/model", {{"title", "A"}, {"voices", clip_}, {"texts", "W."}, {"cover_image", "x"}}));
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body().find("cover_image"), std::string::npos);
  EXPECT_EQ(files(), std::vector<std::string>());
}

// Of each field something right, or something wrong and the word that the refusal must have.
struct ModelPart {
  const char* field;
  std::string right, wrong;
  const char* named;
};

TEST_F(FishModels, RandomCallsAreRightOrSayWhatIsWrong) {
  const ModelPart parts[] = {{"title", "A fish", " ", "title"},
                             {"texts", "Words.", "", "texts"},
                             {"tags", "a,b,,", std::string(200, ','), ""},
                             {"visibility", "unlist", "secret", "visibility"},
                             {"type", "tts", "svc", "type"},
                             {"train_mode", "fast", "full", "train_mode"},
                             {"titel", "", "A", "titel"},
                             {"enhance_audio_quality", "true", "", ""}};
  std::mt19937 random(34);
  std::vector<std::string> ids = {"nobody"};
  size_t stored = 0;
  for (int call = 0; call < 200; ++call) {
    const std::string& id = ids[random() % ids.size()];
    const bool exists = id != "nobody";
    const int way = static_cast<int>(random() % 5);
    std::string wrong;
    Parts form = {{"voices", clip_}};
    if (random() % 6 == 0) form = {{"voices", "no sound"}}, wrong = "voices";
    for (const ModelPart& part : parts) {
      const bool needed = part.field == std::string("title") || part.field == std::string("texts");
      if (!needed && random() % 3 != 0) continue;
      const bool bad = part.named[0] != '\0' && random() % 9 == 0;
      if (bad) wrong = part.named;
      if (bad || part.right != "") form.emplace_back(part.field, bad ? part.wrong : part.right);
    }
    Answered answered;
    if (way <= 1) {
      answered = add(form);
      if (answered.status == 201) ids.push_back(text_of(read_json(answered.body()), "_id")), ++stored;
    } else if (way == 2) {
      wrong = random() % 3 == 0 ? "titel" : exists ? "" : "nobody";
      answered = patch(id, wrong == "titel" ? R"({"titel":"A"})" : R"({"title":"B","tags":"x"})");
    } else if (way == 3) {
      wrong = exists ? "" : "nobody";
      answered = ask(get_request("/model/" + id));
    } else {
      wrong = exists ? "" : "nobody";
      answered = remove(id);
      if (answered.status == 200) std::erase(ids, std::string(id)), --stored;
    }
    SCOPED_TRACE(std::to_string(way) + " " + answered.body().substr(0, 200));
    ASSERT_TRUE(answered.whole);
    ASSERT_EQ(answered.status < 300, wrong.empty()) << wrong;
    ASSERT_EQ(engine_.voices().list().size() - fixed_, stored);
    if (wrong.empty()) continue;
    ASSERT_TRUE(answered.status == 400 || answered.status == 404 || answered.status == 422)
        << answered.status;
    ASSERT_EQ(member(read_json(answered.body()), "statusCode"), Value{int64_t{answered.status}});
  }
}

}  // namespace
}  // namespace shoal::server
