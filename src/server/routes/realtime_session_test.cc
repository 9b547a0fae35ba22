// Conversations of OpenAI's Realtime API: what is spoken, and in which events.
#include <set>

#include "server/routes/realtime_testing.h"

namespace shoal::server {
namespace {

using testing::FakeWebSocket;
using testing::inside;
using testing::kAnna;
using testing::kRespond;
using testing::number_of;
using testing::RealtimeSockets;
using testing::text_in;
using testing::user_says;
using RealtimeHeard = testing::Spoken;

TEST_F(RealtimeSockets, AUsersTextIsSpokenInTheEventsOfTheApi) {
  const RealtimeHeard spoken = talk({kAnna, user_says("A small fish."), kRespond});
  const std::vector<std::string> want = {"session.created",
                                         "session.updated",
                                         "conversation.item.added",
                                         "conversation.item.done",
                                         "response.created",
                                         "response.output_item.added",
                                         "conversation.item.added",
                                         "response.content_part.added",
                                         "response.output_audio_transcript.delta",
                                         "response.output_audio.delta",
                                         "response.output_audio.done",
                                         "response.output_audio_transcript.done",
                                         "response.content_part.done",
                                         "conversation.item.done",
                                         "response.output_item.done",
                                         "response.done"};
  EXPECT_EQ(spoken.types(), want);
  const Value& response = inside(*spoken.of("response.done")[0], "response");
  const std::string& sound = spoken.sound.at(text_in(response, "id"));
  EXPECT_TRUE(sound == said("A small fish."));
  EXPECT_GT(spoken.of("response.output_audio.delta").size(), 1u) << "as it is made";
  const Value& usage = inside(response, "usage");
  EXPECT_EQ(number_of(usage, "input_tokens"), 13);
  EXPECT_EQ(number_of(usage, "output_tokens"), std::ceil(static_cast<double>(sound.size()) / 48000 * 20));
  EXPECT_EQ(text_in(*spoken.of("response.output_audio_transcript.done")[0], "transcript"), "A small fish.");
  std::set<std::string> ids;
  for (const Value& event : spoken.events) EXPECT_TRUE(ids.insert(text_in(event, "event_id")).second);
}

TEST_F(RealtimeSockets, TheBetaHasItsNames) {
  Request request = testing::get_request("/v1/realtime");
  request.headers.add("OpenAI-Beta", "realtime=v1");
  const RealtimeHeard spoken =
      talk({R"({"type":"session.update","session":{"voice":"anna","output_audio_format":"pcm16"}})",
            R"({"type":"session.update","session":{"seed":5}})", user_says("A fish."), kRespond},
           1, {}, request);
  EXPECT_EQ(text_in(inside(*spoken.of("session.updated")[1], "session"), "voice"), "anna");
  EXPECT_EQ(spoken.of("conversation.item.created").size(), 2u);
  EXPECT_TRUE(spoken.of("conversation.item.done").empty());
  EXPECT_TRUE(spoken.sound.begin()->second == said("A fish."));
  EXPECT_EQ(spoken.of("response.audio_transcript.done").size() + spoken.of("response.audio.done").size(), 2u);
}

TEST_F(RealtimeSockets, EachTextIsSpokenOnceAndInputInsteadOfTheConversation) {
  const char* beside =
      R"({"type":"response.create","response":{"conversation":"none","metadata":{"of":"it"},"seed":6,
      "input":[{"type":"item_reference","id":"b"},{"role":"user","content":[{"type":"input_text","text":"A star."}]}]}})";
  int step = 0;
  const RealtimeHeard spoken = talk({kAnna, user_says("A fish.", "a"), user_says("A moon.", "b"), kRespond},
                                    0, [&](const Value& event, FakeWebSocket& socket) {
                                      if (text_in(event, "type") == "response.done")
                                        socket.say(++step == 1 ? kRespond : beside);
                                      if (text_in(event, "type") == "error") socket.say(beside);
                                      if (step == 2) socket.hang_up();
                                    });
  const auto done = spoken.of("response.done");
  ASSERT_GE(done.size(), 2u);
  const Value& both = inside(*done[0], "response");
  const auto words = spoken.of("response.output_audio_transcript.done");
  EXPECT_EQ(text_in(*words[0], "transcript"), "A fish.\nA moon.");
  EXPECT_TRUE(spoken.sound.at(text_in(both, "id")).starts_with(said("A fish.").substr(0, 9600)));
  EXPECT_EQ(spoken.errors(), (std::vector<std::string>{"response_create_nothing_to_speak response"}));
  EXPECT_EQ(text_in(*words[1], "transcript"), "A moon.\nA star.");
  const Value& second = inside(*done[1], "response");
  EXPECT_EQ(text_in(inside(second, "metadata"), "of"), "it");
  EXPECT_TRUE(inside(second, "conversation_id").is_null());
}

TEST_F(RealtimeSockets, ACancelledResponseEndsAndTheNextOneSpeaks) {
  const std::string story =
      "Once upon a time there was a shoal of silver fish. They swam where big ones could not. ";
  bool cancelled = false;
  const RealtimeHeard spoken =
      talk({kAnna, user_says(story + story + story), kRespond, kRespond}, 2,
           [&](const Value& event, FakeWebSocket& socket) {
             if (text_in(event, "type") != "response.output_audio.delta" || std::exchange(cancelled, true))
               return;
             for (const char* json :
                  {R"({"type":"response.cancel"})", R"({"type":"response.cancel","event_id":"late"})"})
               socket.say(json);
             socket.say(user_says("A fish."));
             socket.say(kRespond);
           });
  EXPECT_EQ(spoken.outcomes(), (std::vector<std::string>{"cancelled", "completed"}));
  EXPECT_EQ(spoken.errors(), (std::vector<std::string>{"conversation_already_has_active_response ",
                                                       "response_cancel_not_active "}));
  EXPECT_EQ(text_in(inside(*spoken.of("error")[1], "error"), "event_id"), "late");
  const Value& last = inside(*spoken.of("response.done")[1], "response");
  EXPECT_TRUE(spoken.sound.at(text_in(last, "id")) == said("A fish."));
}

TEST_F(RealtimeSockets, ResponsesOutOfBandSpeakBesideEachOther) {
  const auto beside = [](const char* text) {
    return std::string(R"({"type":"response.create","response":{"conversation":"none","input":[{"role":"user",
        "content":[{"type":"input_text","text":")") +
           text + R"("}]}]}})";
  };
  const RealtimeHeard spoken =
      talk({kAnna, user_says("A fish."), kRespond, beside("A moon."), beside("A star.")}, 3);
  EXPECT_EQ(spoken.outcomes(), std::vector<std::string>(3, "completed"));
  std::multiset<std::string> sounds, want = {said("A fish."), said("A moon."), said("A star.")};
  for (const auto& [id, sound] : spoken.sound) sounds.insert(sound);
  EXPECT_TRUE(sounds == want);
}

TEST_F(RealtimeSockets, AResponseEndsAtItsTokens) {
  const RealtimeHeard spoken = talk({kAnna, user_says("A small fish swims below."),
                                     R"({"type":"response.create","response":{"max_output_tokens":5}})"});
  EXPECT_EQ(spoken.outcomes(), (std::vector<std::string>{"incomplete"}));
  EXPECT_TRUE(spoken.sound.begin()->second == said("A small fish swims below.").substr(0, 5 * 2400));
  const Value& response = inside(*spoken.of("response.done")[0], "response");
  EXPECT_EQ(text_in(inside(response, "status_details"), "reason"), "max_output_tokens");
  EXPECT_EQ(number_of(inside(response, "usage"), "output_tokens"), 5);
}

TEST_F(RealtimeSockets, ItemsAreToldTruncatedAndDeleted) {
  const auto react = [](const Value& event, FakeWebSocket& socket) {
    if (text_in(event, "type") != "response.done") return;
    const Value& output = inside(inside(event, "response"), "output");
    const std::string id = R"("item_id":")" + text_in(output.as<Value::Array>()->at(0), "id") + "\"}";
    const std::string cut = R"({"type":"conversation.item.truncate","content_index":0,"audio_end_ms":)";
    socket.say(R"({"type":"conversation.item.retrieve",)" + id);
    socket.say(cut + "9000000," + id);
    socket.say(cut + "100," + id);
    socket.say(R"({"type":"conversation.item.retrieve",)" + id);
    socket.say(R"({"type":"conversation.item.delete",)" + id);
    socket.say(R"({"type":"conversation.item.retrieve",)" + id);
    socket.say(cut + R"(0,"item_id":"mine"})");
  };
  const RealtimeHeard spoken = talk({kAnna, user_says("A fish.", "mine"), kRespond}, 1, react);
  const auto told = spoken.of("conversation.item.retrieved");
  ASSERT_EQ(told.size(), 2u);
  const auto words = [](const Value& event) {
    return text_in(inside(inside(event, "item"), "content").as<Value::Array>()->at(0), "transcript");
  };
  EXPECT_EQ(words(*told[0]) + words(*told[1]), "A fish.");
  EXPECT_EQ(spoken.of("conversation.item.deleted").size(), 1u);
  EXPECT_EQ(spoken.errors(), (std::vector<std::string>{"item_truncate_invalid_audio_end_ms audio_end_ms",
                                                       "item_retrieve_invalid_item_id item_id",
                                                       "item_truncate_invalid_item_id item_id"}));
}

TEST_F(RealtimeSockets, WhatIsWrongIsNamedAndTheSessionLivesOn) {
  const RealtimeHeard spoken = talk(
      {"{", R"({"type":"input_audio_buffer.append","audio":"AAAA","event_id":"ears"})",
       R"({"type":"session.update","session":{"audio":{"output":{"voice":"nobody"}}}})",
       R"({"type":"session.update","session":{"model":"nothing"}})",
       R"({"type":"response.create","response":{"audio":{"output":{"voice":"nobody"}},"input":[{"role":"user",
           "content":[{"type":"input_text","text":"A."}]}]}})",
       kAnna, user_says("A fish."), kRespond});
  EXPECT_EQ(spoken.errors(),
            (std::vector<std::string>{"invalid_argument ", "unsupported type",
                                      "not_found session.audio.output.voice", "model_not_found session.model",
                                      "not_found response.audio.output.voice"}));
  EXPECT_EQ(text_in(inside(*spoken.of("error")[1], "error"), "event_id"), "ears");
  EXPECT_EQ(spoken.outcomes(), (std::vector<std::string>{"completed"}));
  Request listener = testing::get_request("/v1/realtime");
  listener.query = {{"intent", "transcription"}};
  const RealtimeHeard refused = talk({}, 0, {}, listener);
  EXPECT_EQ(refused.errors(), (std::vector<std::string>{"unsupported intent"}));
  EXPECT_EQ(refused.closed_with, 1008);
  ServerConfig impatient;
  impatient.idle_timeout_s = 1;
  const RealtimeHeard silent =
      talk({}, 0, [](const Value&, FakeWebSocket&) {}, testing::get_request("/v1/realtime"), impatient);
  EXPECT_EQ(silent.errors(), (std::vector<std::string>{"session_expired "}));
  EXPECT_EQ(silent.closed_with, 1000);
}

}  // namespace
}  // namespace shoal::server
