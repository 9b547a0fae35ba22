// The folder of voices over HTTP: fields, statuses, media types, names that are paths.
#include <csignal>
#include <fstream>
#include <gmock/gmock.h>
#include <iterator>
#include <sys/resource.h>

#include "base/base64.h"
#include "base/temporary_folder_testing.h"
#include "server/routes/clip_testing.h"
#include "server/routes/packed_answer.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::bytes_value;
using testing::clip_file;
using testing::is_true;
using testing::packed_request;
using testing::text_of;
using testing::text_value;

// The engine never runs: voices are there without a model.
class References : public ::testing::Test {
 protected:
  References() { std::filesystem::create_directory(folder_.path("voices")); }

  EngineConfig engine_config() const {
    EngineConfig config = testing::built_in_config();
    config.references_dir = folder_.path("voices");
    return config;
  }
  Answered ask(Request request) { return bench_.ask(std::move(request)); }
  Answered add(const std::string& id, std::string audio, const std::string& text = "some words") {
    return ask(packed_request(
        "POST", "/v1/references/add",
        {Value::Object{
            {"id", text_value(id)}, {"text", text_value(text)}, {"audio", bytes_value(std::move(audio))}}}));
  }
  Answered remove(const std::string& id) {
    return ask(
        packed_request("DELETE", "/v1/references/delete", {Value::Object{{"reference_id", text_value(id)}}}));
  }
  Answered rename(const std::string& from, const std::string& to) {
    return ask(packed_request(
        "POST", "/v1/references/update",
        {Value::Object{{"old_reference_id", text_value(from)}, {"new_reference_id", text_value(to)}}}));
  }
  std::vector<std::string> listed() {
    const Answered answer = ask(testing::get_request("/v1/references/list"));
    EXPECT_EQ(answer.status, 200);
    std::vector<std::string> names;
    const Value body = read_msgpack(answer.body());
    for (const Value& name : testing::array_of(body, "reference_ids"))
      names.push_back(*name.as<std::string>());
    return names;
  }

  TemporaryFolder folder_;
  Engine engine_{engine_config()};
  testing::RouteBench bench_{reference_routes, engine_};
};

// A refusal in the form of this family.
void expect_failure(const Answered& answer, int status, const std::string& id_field, const std::string& id) {
  EXPECT_EQ(answer.status, status) << answer.body();
  const Value body = read_msgpack(answer.body());
  EXPECT_EQ(testing::member(body, "success"), Value{false});
  EXPECT_EQ(text_of(body, id_field), id);
  EXPECT_FALSE(text_of(body, "message").empty());
  EXPECT_EQ(text_of(body, "message").find("/voices"), std::string::npos) << text_of(body, "message");
}

TEST_F(References, AVoiceIsAddedListedRenamedAndDeleted) {
  const std::string audio = clip_file(1);
  const Answered added = add("Jane Doe-1_x", audio, "the words\n");
  EXPECT_EQ(added.status, 200) << added.body();
  EXPECT_EQ(added.content_type, "application/msgpack");
  const Value body = read_msgpack(added.body());
  ASSERT_EQ(body.as<Value::Object>()->size(), 3u);
  EXPECT_TRUE(is_true(body, "success"));
  EXPECT_EQ(text_of(body, "reference_id"), "Jane Doe-1_x");
  EXPECT_NE(text_of(body, "message").find("Jane Doe-1_x"), std::string::npos);

  std::ifstream file(folder_.path("voices/Jane Doe-1_x/sample.wav"), std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), audio);
  EXPECT_EQ(engine_.voices().get("Jane Doe-1_x").transcripts, std::vector<std::string>{"the words\n"});

  EXPECT_EQ(add("Anna", audio).status, 200);
  EXPECT_EQ(listed(), (std::vector<std::string>{"Anna", "Jane Doe-1_x"}));

  const Answered renamed = rename("Anna", "Berta");
  EXPECT_EQ(renamed.status, 200);
  const Value names = read_msgpack(renamed.body());
  EXPECT_TRUE(is_true(names, "success"));
  EXPECT_EQ(text_of(names, "old_reference_id"), "Anna");
  EXPECT_EQ(text_of(names, "new_reference_id"), "Berta");
  EXPECT_EQ(listed(), (std::vector<std::string>{"Berta", "Jane Doe-1_x"}));

  const Answered removed = remove("Berta");
  EXPECT_EQ(removed.status, 200);
  EXPECT_EQ(text_of(read_msgpack(removed.body()), "reference_id"), "Berta");
  EXPECT_EQ(listed(), (std::vector<std::string>{"Jane Doe-1_x"}));
}

TEST_F(References, OnlyAddingTakesASlot) {
  for (const Route& route : reference_routes({}))
    EXPECT_EQ(route.takes_slot, route.path == "/v1/references/add") << route.path;
}

TEST_F(References, AcceptsFormsAndJson) {
  const std::string audio = clip_file(1);
  Request form;
  form.method = "POST";
  form.path = "/v1/references/add";
  form.headers.add("Content-Type", "multipart/form-data; boundary=XyZ");
  const auto part = [](const std::string& head, const std::string& content) {
    return "--XyZ\r\nContent-Disposition: form-data; " + head + "\r\n\r\n" + content + "\r\n";
  };
  form.body = part("name=\"id\"", "form") + part("name=\"text\"", "words") +
              part("name=\"audio\"; filename=\"../../evil.wav\"\r\nContent-Type: audio/wav", audio) +
              "--XyZ--\r\n";
  EXPECT_EQ(ask(form).status, 200);
  const std::string json = R"({"id":"json","text":"words","audio":")" + to_base64(audio) + "\"}";
  EXPECT_EQ(ask(testing::json_request("/v1/references/add", json)).status, 200);
  EXPECT_EQ(listed(), (std::vector<std::string>{"form", "json"}));

  // A client that cannot send a body with DELETE.
  Request in_query = testing::get_request("/v1/references/delete");
  in_query.method = "DELETE";
  in_query.query = {{"reference_id", "json"}, {"format", "json"}};
  const Answered removed = ask(in_query);
  EXPECT_EQ(removed.status, 200);
  EXPECT_EQ(text_of(read_json(removed.body()), "reference_id"), "json");
  EXPECT_EQ(listed(), (std::vector<std::string>{"form"}));
}

TEST_F(References, AnswersMessagePackUnlessTheClientAsksForJson) {
  struct Case {
    const char* format;
    const char* accept;
    bool json;
  };
  for (const Case& c : {Case{nullptr, nullptr, false},
                        {"json", nullptr, true},
                        {"application/json", nullptr, true},
                        {"application/json", "application/msgpack", true},
                        {"msgpack", "application/json", false},
                        {"application/msgpack", "application/json", false},
                        {"xml", "application/json", true},
                        {nullptr, "application/json", true},
                        {nullptr, "Application/JSON; q=0.9, text/plain", true},
                        {nullptr, "application/json, application/msgpack", false},
                        {nullptr, "application/json, application/msgpack;q=0", true},
                        {nullptr, "application/json-seq", false},
                        {nullptr, "*/*", false}}) {
    Request request = testing::get_request("/v1/references/list");
    if (c.format) request.query.emplace_back("format", c.format);
    if (c.accept) request.headers.add("Accept", c.accept);
    const Answered answer = ask(request);
    EXPECT_EQ(answer.content_type, c.json ? "application/json" : "application/msgpack")
        << c.format << c.accept;
    const Value body = c.json ? read_json(answer.body()) : read_msgpack(answer.body());
    EXPECT_TRUE(is_true(body, "success"));
    EXPECT_EQ(body.as<Value::Object>()->size(), 3u);
    EXPECT_EQ(answer.status, 200);
  }
}

TEST_F(References, NamesThatArePathsAreRefusedEverywhereAndChangeNothing) {
  ASSERT_EQ(add("good", clip_file(1)).status, 200);
  folder_.write("sample.lab", "words");
  folder_.write("sample.wav", clip_file(1));
  const std::vector<std::string> before = folder_.tree();
  for (const std::string& id :
       {std::string("../x"), std::string(".."), std::string("."), std::string("a/b"), std::string("a\0b", 3),
        std::string(), std::string(256, 'a'), std::string("good/../good"), std::string("/etc"),
        std::string("good\n"), std::string("a\\b"), std::string("\xC3\xA4"), std::string("%2e%2e")}) {
    expect_failure(add(id, clip_file(1)), 400, "reference_id", id);
    expect_failure(remove(id), 400, "reference_id", id);
    expect_failure(rename(id, "other"), 400, "old_reference_id", id);
    expect_failure(rename("good", id), 400, "new_reference_id", id);
  }
  EXPECT_EQ(folder_.tree(), before);
  EXPECT_EQ(add(std::string(255, 'a'), clip_file(1)).status, 200);
}

TEST_F(References, EveryFailureHasItsStatus) {
  ASSERT_EQ(add("one", clip_file(1)).status, 200);
  ASSERT_EQ(add("two", clip_file(1)).status, 200);
  expect_failure(add("one", clip_file(1)), 409, "reference_id", "one");
  expect_failure(rename("one", "two"), 409, "new_reference_id", "two");
  expect_failure(rename("nobody", "three"), 404, "old_reference_id", "nobody");
  expect_failure(remove("nobody"), 404, "reference_id", "nobody");
  expect_failure(add("three", clip_file(1), ""), 400, "reference_id", "three");
  expect_failure(add("three", clip_file(1), " \n"), 400, "reference_id", "three");
  expect_failure(add("three", ""), 400, "reference_id", "three");
  expect_failure(add("three", "RIFFnot really"), 400, "reference_id", "three");
  expect_failure(add("three", clip_file(0.05)), 400, "reference_id", "three");
  EXPECT_EQ(listed(), (std::vector<std::string>{"one", "two"}));
}

TEST_F(References, InvalidBodiesGiveErrorsInTheFormOfTheApi) {
  const auto refused = [&](Request request) {
    const Answered answer = ask(std::move(request));
    const Value body = read_json(answer.body());
    EXPECT_EQ(testing::member(body, "statusCode"), (Value{int64_t{answer.status}}));
    return std::pair(answer.status, text_of(body, "message"));
  };
  const auto [status, message] =
      refused(testing::json_request("/v1/references/add", R"({"id":"x","text":"y"})"));
  EXPECT_EQ(status, 422);
  EXPECT_NE(message.find("audio"), std::string::npos) << message;
  EXPECT_EQ(refused(testing::json_request("/v1/references/add", R"({"id":1,"text":"y","audio":""})")).first,
            422);
  EXPECT_EQ(
      refused(testing::json_request("/v1/references/add", R"({"id":"x","text":"y","audio":"?"})")).first,
      422);
  EXPECT_EQ(refused(testing::json_request("/v1/references/add", R"({"idd":"x"})")).first, 422);
  EXPECT_EQ(refused(testing::json_request("/v1/references/add", "{")).first, 400);
  Request other = testing::json_request("/v1/references/add", "id=x");
  other.headers = {{"Content-Type", "text/plain"}};
  EXPECT_EQ(refused(other).first, 415);
}

TEST_F(References, HoursOfSoundAreRefusedWithinSeconds) {
  const std::string hours = testing::long_flac(3600);
  ASSERT_LT(hours.size(), size_t{8} << 20);
  expect_failure(add("long", hours), 413, "reference_id", "long");
  const std::string claims = testing::claims_hours(clip_file(1, audio::Format::flac));
  const int status = add("claims", claims).status;  // a second of sound that says it is 99 days
  EXPECT_TRUE(status == 200 || status == 400) << status;

  ServerConfig strict;
  strict.max_reference_s = 2;
  testing::RouteBench bench(reference_routes, engine_, strict);
  const Value body{Value::Object{
      {"id", text_value("x")}, {"text", text_value("y")}, {"audio", bytes_value(clip_file(2.5))}}};
  expect_failure(bench.ask(packed_request("POST", "/v1/references/add", body)), 413, "reference_id", "x");
}

TEST_F(References, AReadOnlyFolderIsOurFaultAndIsNotNamed) {
  folder_.write("voices_file", "not a folder");
  EngineConfig config = engine_config();
  config.references_dir = folder_.path("voices_file");
  Engine engine(config);
  testing::RouteBench bench(reference_routes, engine);
  const Value body{Value::Object{
      {"id", text_value("x")}, {"text", text_value("y")}, {"audio", bytes_value(clip_file(1))}}};
  expect_failure(bench.ask(packed_request("POST", "/v1/references/add", body)), 500, "reference_id", "x");
}

// Limits the size of files that this process may write, with the effect of a full disk on a new voice. Other
// voices stay.
class ShortFiles {
 public:
  explicit ShortFiles(rlim_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~ShortFiles() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }
  ShortFiles(const ShortFiles&) = delete;
  ShortFiles& operator=(const ShortFiles&) = delete;

 private:
  rlimit before_{};
  void (*signal_)(int);
};

TEST_F(References, AFullDiskIs507WithoutAPath) {
  const std::string audio = clip_file(4);
  Answered answer;
  {
    const ShortFiles limit(1000);
    answer = add("full", audio);
  }
  expect_failure(answer, 507, "reference_id", "full");
  EXPECT_EQ(answer.header("retry-after"), "");
  EXPECT_EQ(text_of(read_msgpack(answer.body()), "message").find(folder_.path("")), std::string::npos);
  EXPECT_EQ(add("full", audio).status, 200) << "nothing was left behind";
}

TEST_F(References, AliasesAreReservedNames) {
  ServerConfig config;
  config.voice_aliases = "narrator=clara";
  testing::RouteBench bench(reference_routes, engine_, config);
  const auto added = [&](const std::string& id) {
    return bench.ask(packed_request("POST", "/v1/references/add",
                                    {Value::Object{{"id", text_value(id)},
                                                   {"text", text_value("some words")},
                                                   {"audio", bytes_value(clip_file(1))}}}));
  };
  ASSERT_EQ(added("mine").status, 200);
  for (const std::string id : {"default", "Default", "built-in", "alloy", "Nova", "narrator"}) {
    expect_failure(added(id), 409, "reference_id", id);
    const Answered renamed = bench.ask(packed_request(
        "POST", "/v1/references/update",
        {Value::Object{{"old_reference_id", text_value("mine")}, {"new_reference_id", text_value(id)}}}));
    expect_failure(renamed, 409, "new_reference_id", id);
    EXPECT_THAT(text_of(read_msgpack(renamed.body()), "message"), ::testing::HasSubstr(id));
  }
  EXPECT_EQ(listed(), std::vector<std::string>{"mine"});
}

TEST_F(References, UnknownVoicesGetTheClosestName) {
  ASSERT_EQ(add("Berta", clip_file(1)).status, 200);
  for (const Answered& answer : {remove("Bertha"), rename("Bertha", "other")}) {
    EXPECT_EQ(answer.status, 404);
    EXPECT_EQ(text_of(read_msgpack(answer.body()), "message"),
              R"(voice: there is none called "Bertha"; the nearest is "Berta"; see /v1/references/list)");
  }
}

TEST_F(References, AVoiceThatIsALinkIsKeptAndNoPathIsRevealed) {
  ASSERT_EQ(add("one", clip_file(1)).status, 200);
  std::filesystem::create_directory_symlink(folder_.path("voices/one"), folder_.path("voices/link"));
  const Answered answer = rename("link", "two");
  expect_failure(answer, 400, "old_reference_id", "link");
  EXPECT_EQ(answer.body().find(folder_.path("")), std::string::npos) << answer.body();
}

}  // namespace
}  // namespace shoal::server
