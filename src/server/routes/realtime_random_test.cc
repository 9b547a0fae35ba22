// Random events of OpenAI's Realtime API, valid and hostile, in any order.
#include <random>
#include <set>

#include "server/routes/realtime_testing.h"

namespace shoal::server {
namespace {

using testing::FakeWebSocket;
using testing::inside;
using testing::RealtimeSockets;
using testing::text_in;
using testing::user_says;

// One event of a client, and what may answer it.
struct Said {
  std::string json, kind, id;
};

Said random_event(std::mt19937& random, int number) {
  const std::string id(1, static_cast<char>('a' + random() % 4));
  const std::string mine = R"("event_id":")" + std::to_string(number) + "\",";
  const std::string at = R"("item_id":")" + id + "\"}";
  switch (random() % 9) {
    case 0:
    case 1:
      return {"{" + mine + user_says(random() % 5 ? "Hm." : "🐟", id).substr(1), "create", id};
    case 2:
      return {"{" + mine + R"("type":"conversation.item.retrieve",)" + at, "retrieve", id};
    case 3:
      return {"{" + mine + R"("type":"conversation.item.delete",)" + at, "delete", id};
    case 4:
      return {"{" + mine + R"("type":"session.update","session":{"audio":{"output":{"speed":1.5}}}})",
              "update", ""};
    case 5:
      return {"{" + mine + R"("type":"response.create"})", "respond", ""};
    case 6:
      return {"{" + mine + R"("type":"response.cancel"})", "cancel", ""};
    case 7:
      return {"{" + mine + R"("type":"conversation.item.truncate","content_index":0,"audio_end_ms":1,)" + at,
              "wrong", ""};
    default:
      break;
  }
  static const char* const kHostile[] = {
      R"("type":"sing"})",
      R"("type":"input_audio_buffer.append","audio":"////"})",
      R"("type":"session.update","session":{"audio":{"output":{"speed":-1}}}})",
      R"("type":"session.update","session":[]})",
      R"("type":"response.create","response":{"input":[{"type":"item_reference"}]}})",
      R"("type":"response.create","response":{"metadata":{"a":1}}})",
      R"("type":"conversation.item.create","item":{"role":"god","content":[]}})",
      R"("type":"conversation.item.create","item":{"type":"mcp_call"}})",
      R"("type":7})"};
  return {"{" + mine + kHostile[random() % std::size(kHostile)], "wrong", ""};
}

// The conversation as the test knows it, step by step through the answers.
class Expectation {
 public:
  void check(const Said& said, const Value& answer) {
    const std::string type = text_in(answer, "type");
    const bool error = type == "error";
    const bool known = items_.count(said.id) > 0;
    const std::string want = said.kind == "wrong"               ? "error"
                             : said.kind == "update"            ? "session.updated"
                             : said.kind == "respond" && !error ? "response.created"
                             : said.kind == "respond"           ? "error"
                             : said.kind == "create"            ? (known ? "error" : "conversation.item.done")
                             : !known                           ? "error"
                             : said.kind == "retrieve"          ? "conversation.item.retrieved"
                                                                : "conversation.item.deleted";
    if (said.kind != "cancel") {
      EXPECT_EQ(type, want) << said.json;
    }
    if (type == "response.created") {
      EXPECT_TRUE(waits()) << "nothing was there to speak";
    }
    if (said.kind == "create" && !error) items_[said.id] = true;
    if (said.kind == "delete") items_.erase(said.id);
    if (said.kind == "respond" && !error)
      for (auto& [id, waiting] : items_) waiting = false;
  }

 private:
  bool waits() const {
    return std::any_of(items_.begin(), items_.end(), [](const auto& item) { return item.second; });
  }
  std::map<std::string, bool> items_;  // and whether they wait to be spoken
};

bool answers_an_event(const Value& event) {
  const std::string type = text_in(event, "type");
  static const std::set<std::string> kAnswers = {"session.updated",           "conversation.item.retrieved",
                                                 "conversation.item.deleted", "conversation.item.truncated",
                                                 "response.created",          "error"};
  if (type != "conversation.item.done") return kAnswers.count(type) > 0;
  return text_in(inside(event, "item"), "role") == "user";
}

TEST_F(RealtimeSockets, RandomEventsGetTheirAnswerOrATypedError) {
  std::mt19937 random(34);
  for (int run = 0; run < 8; ++run) {
    std::vector<Said> said;
    for (int i = 0; i < 25; ++i) said.push_back(random_event(random, i));
    said.push_back({R"({"type":"the last"})", "wrong", ""});
    std::vector<std::string> events;
    for (const Said& one : said) events.push_back(one.json);
    int open = 0;
    bool last = false;
    const testing::Spoken spoken = talk(events, 0, [&](const Value& event, FakeWebSocket& socket) {
      const std::string type = text_in(event, "type");
      if (type == "response.created") ++open;
      if (type == "response.done") --open;
      if (type == "error" && write_json(event).find("the last") != std::string::npos) last = true;
      if (last && open == 0) socket.hang_up();
    });
    std::vector<const Value*> answers;
    for (const Value& event : spoken.events)
      if (answers_an_event(event)) answers.push_back(&event);
    Expectation expectation;
    size_t next = 0, cancelled = 0;
    for (size_t i = 0; i < said.size(); ++i) {
      ASSERT_LT(next, answers.size()) << said[i].json;
      const Value* error = answers[next]->find("error");
      if (said[i].kind == "cancel" && (!error || text_in(*error, "event_id") != std::to_string(i))) {
        ++cancelled;  // is answered by the end of its response
        continue;
      }
      expectation.check(said[i], *answers[next]);
      if (error) {
        EXPECT_EQ(text_in(*error, "event_id"), i + 1 < said.size() ? std::to_string(i) : "") << said[i].json;
        EXPECT_EQ(text_in(*error, "type"), "invalid_request_error") << write_json(*error);
        EXPECT_NE(text_in(*error, "code"), "");
      }
      ++next;
    }
    EXPECT_EQ(next, answers.size());
    const auto outcomes = spoken.outcomes();
    EXPECT_EQ(outcomes.size(), spoken.of("response.created").size());
    EXPECT_LE(static_cast<size_t>(std::count(outcomes.begin(), outcomes.end(), "cancelled")), cancelled);
  }
}

}  // namespace
}  // namespace shoal::server
