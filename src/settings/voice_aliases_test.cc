#include "settings/voice_aliases.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "shoal/server_config.h"

namespace shoal {
namespace {

std::string joined(std::string_view list) {
  std::string text;
  for (const VoiceAlias& alias : parse_voice_aliases(list)) text += alias.name + ">" + alias.voice + ";";
  return text;
}

std::string message_of(const std::string& list) {
  ServerConfig config;
  config.voice_aliases = list;
  try {
    config.validate();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.message();
  }
  return "accepted";
}

TEST(VoiceAliases, ListNamesAndVoicesInOrder) {
  EXPECT_EQ(joined(""), "");
  EXPECT_EQ(joined("alloy=clara,nova=nora"), "alloy>clara;nova>nora;");
  EXPECT_EQ(joined(" my voice = ann lee , alloy=af_heart,alloy=default,"),
            "my voice>ann lee;alloy>af_heart;alloy>default;");
  EXPECT_EQ(joined("duo=af_bella(2)+af_sky(1)"), "duo>af_bella(2)+af_sky(1);");
}

TEST(VoiceAliases, InvalidEntriesAreRefusedByName) {
  EXPECT_EQ(message_of("alloy=clara"), "accepted");
  for (const char* list : {"alloy", "alloy=", "=clara", "alloy=clara,,nova=nora", "a/b=clara", "../x=clara",
                           "default=clara", "Built-In=clara", "alloy=cla\nra", "alloy=\xff"})
    EXPECT_TRUE(message_of(list).starts_with("voice_aliases: expected ")) << list << ": " << message_of(list);
}

TEST(VoiceAliases, ContainEveryOpenAiVoiceOnce) {
  for (const settings::OpenAiVoice& voice : settings::kOpenAiVoices)
    EXPECT_EQ(settings::find_openai_voice(voice.name), &voice) << voice.name;
  EXPECT_EQ(settings::find_openai_voice("default"), nullptr);
}

}  // namespace
}  // namespace shoal
