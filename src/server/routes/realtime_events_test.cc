// What clients of OpenAI's Realtime API send, read and refused by name, and the conversation of it.
#include "server/routes/realtime_events.h"

#include <gtest/gtest.h>

namespace shoal::server {
namespace {

RealtimeEvent read_event(const std::string& json, RealtimeSettings session = {}) {
  static const RealtimeReader reader;
  std::string id;
  return reader.read(json, session, id);
}
// "code param" of what is wrong with it, "" if nothing is.
std::string wrong_with(const std::string& json) {
  try {
    read_event(json);
  } catch (const BodyError& error) {
    const HttpError told = http_error(error);
    return std::string(name_of(told.code)) + " " + told.param;
  }
  return "";
}
std::string session_update(const std::string& session) {
  return R"({"type":"session.update","session":)" + session + "}";
}
std::string item_create(const std::string& item) {
  return R"({"type":"conversation.item.create","item":)" + item + "}";
}

TEST(RealtimeEvents, ASessionIsReadInTodaysFormAndInThatOfTheBeta) {
  const RealtimeSettings today =
      read_event(session_update(R"({"type":"realtime","output_modalities":["audio"],
      "audio":{"input":{"format":{"type":"audio/pcm","rate":24000},"turn_detection":null,"transcription":null},
               "output":{"format":{"type":"audio/pcmu"},"voice":{"id":"nora"},"speed":1.25}},
      "tools":[],"tool_choice":"auto","max_output_tokens":40,"seed":7})"))
          .settings;
  EXPECT_EQ(today.format + " " + today.voice, "audio/pcmu nora");
  EXPECT_EQ(today.rate_hz, 8000);
  EXPECT_EQ(today.speed, 1.25);
  EXPECT_EQ(today.max_tokens, 40);
  EXPECT_EQ(today.seed, 7u);
  EXPECT_TRUE(today.unused.empty()) << today.unused.front();
  const RealtimeSettings beta = read_event(session_update(R"({"modalities":["text","audio"],"voice":"ash",
      "output_audio_format":"g711_alaw","turn_detection":null,"max_response_output_tokens":"inf","temperature":0.8,
      "instructions":"Be kind."})"),
                                           today)
                                    .settings;
  EXPECT_EQ(beta.format + " " + beta.voice, "audio/pcma ash");
  EXPECT_EQ(beta.speed, 1.25) << "what an update leaves out stays";
  EXPECT_FALSE(beta.max_tokens);
  EXPECT_EQ(beta.unused.size(), 2u) << "instructions and temperature have no effect";
}

TEST(RealtimeEvents, WhatNeedsEarsOrToolsIsRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type":"input_audio_buffer.append","audio":"AAAA"})", "unsupported type"},
      {R"({"type":"input_audio_buffer.commit"})", "unsupported type"},
      {R"({"type":"output_audio_buffer.clear"})", "unsupported type"},
      {R"({"type":"transcription_session.update","session":{}})", "unsupported type"},
      {R"({"type":"sing"})", "invalid_argument type"},
      {R"({"typ":"response.create"})", "invalid_argument type"},
      {"[]", "invalid_argument "},
      {R"({"type":"response.create","respones":{}})", "invalid_argument respones"},
      {R"({"type":"response.cancel","response_id":7})", "invalid_argument response_id"}};
  for (const auto& [json, want] : cases) EXPECT_EQ(wrong_with(json), want) << json;
  const std::pair<const char*, const char*> sessions[] = {
      {R"({"type":"transcription"})", "unsupported session.type"},
      {R"({"audio":{"input":{"turn_detection":{"type":"server_vad"}}}})",
       "unsupported session.audio.input.turn_detection"},
      {R"({"audio":{"input":{"transcription":{"model":"whisper-1"}}}})",
       "unsupported session.audio.input.transcription"},
      {R"({"turn_detection":{"type":"server_vad"}})", "unsupported session.turn_detection"},
      {R"({"tools":[{"type":"function","name":"a"}]})", "unsupported session.tools"},
      {R"({"tool_choice":"required"})", "unsupported session.tool_choice"},
      {R"({"output_modalities":["text"]})", "unsupported session.output_modalities"},
      {R"({"prompt":{"id":"a"}})", "unsupported session.prompt"},
      {R"({"audio":{"output":{"format":{"type":"audio/mp3"}}}})",
       "invalid_argument session.audio.output.format.type"},
      {R"({"audio":{"output":{"format":{"type":"audio/pcmu","rate":24000}}}})",
       "invalid_argument session.audio.output.format.rate"},
      {R"({"audio":{"output":{"speed":9}}})", "invalid_argument session.audio.output.speed"},
      {R"({"max_output_tokens":0})", "invalid_argument session.max_output_tokens"},
      {R"({"audio":{"output":{"vioce":"a"}}})", "invalid_argument session.audio.output.vioce"}};
  for (const auto& [json, want] : sessions) EXPECT_EQ(wrong_with(session_update(json)), want) << json;
}

TEST(RealtimeEvents, ItemsAreMessagesOfText) {
  EXPECT_EQ(
      read_event(item_create(R"({"type":"message","role":"user","content":[{"type":"input_text","text":"A."},
      {"type":"text","text":"B."}]})"))
          .item.text(),
      "A.\nB.");
  EXPECT_EQ(
      read_event(item_create(R"({"role":"assistant","content":[{"type":"output_audio","transcript":"C."}]})"))
          .item.text(),
      "C.");
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type":"message","role":"user","content":[{"type":"input_audio","audio":"AAAA"}]})",
       "unsupported item.content[0].type"},
      {R"({"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"a"}]})",
       "unsupported item.content[1].type"},
      {R"({"type":"function_call_output","call_id":"a","output":"b"})", "unsupported item.type"},
      {R"({"type":"message","content":[]})", "invalid_argument item.role"},
      {R"({"role":"user","content":"Hello"})", "invalid_argument item.content"},
      {R"({"role":"user","content":[{"type":"input_text"}]})", "invalid_argument item.content[0].text"},
      {R"({"role":"user","content":[{"type":"output_text","text":"a"}]})",
       "invalid_argument item.content[0].type"},
      {"7", "invalid_argument item"}};
  for (const auto& [json, want] : cases) EXPECT_EQ(wrong_with(item_create(json)), want) << json;
  const std::string long_text(kMostItemBytes + 1, 'a');
  EXPECT_EQ(wrong_with(item_create(R"({"role":"user","content":[{"type":"input_text","text":")" + long_text +
                                   "\"}]}")),
            "too_large item.content[0].text");
}

TEST(RealtimeEvents, AnEventThatIsWrongKeepsItsId) {
  const RealtimeReader reader;
  std::string id;
  EXPECT_THROW(reader.read(R"({"type":"sing","event_id":"mine"})", {}, id), BodyError);
  EXPECT_EQ(id, "mine");
}

RealtimeItem user_item(std::string id, const std::string& text = "A.") {
  return {.id = std::move(id), .role = "user", .content = {{"input_text", text}}};
}

TEST(RealtimeConversation, ItemsStandWhereTheyWerePut) {
  RealtimeConversation conversation;
  EXPECT_EQ(conversation.add(user_item("a")), "");
  EXPECT_EQ(conversation.add(user_item("b")), "a");
  EXPECT_EQ(conversation.add(user_item("c"), "a"), "a");
  EXPECT_EQ(conversation.add(user_item("d"), "root"), "");
  std::string order;
  for (const RealtimeItem* item : conversation.waiting()) order += item->id;
  EXPECT_EQ(order, "dacb");
  EXPECT_THROW(conversation.add(user_item("a")), RealtimeError);
  EXPECT_THROW(conversation.add(user_item("e"), "nobody"), RealtimeError);
}

TEST(RealtimeConversation, ForgetsTheOldestThatDoNotWait) {
  RealtimeConversation conversation;
  conversation.add(user_item("waits"));
  for (size_t i = 0; i < 2 * RealtimeConversation::kMostItems; ++i) {
    RealtimeItem spoken = user_item(std::to_string(i));
    spoken.spoken = true;
    conversation.add(std::move(spoken));
  }
  EXPECT_TRUE(conversation.find("waits"));
  EXPECT_FALSE(conversation.find("0"));
  EXPECT_TRUE(conversation.find(std::to_string(2 * RealtimeConversation::kMostItems - 1)));
  RealtimeConversation full;
  const std::string text(kMostItemBytes, 'a');
  const auto fill = [&] {
    for (size_t i = 0; i < RealtimeConversation::kMostItems; ++i)
      full.add(user_item(std::to_string(i), text));
  };
  EXPECT_THROW(fill(), Error) << "a megabyte waits";
}

}  // namespace
}  // namespace shoal::server
