#include "text/ssml/ssml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace shoal::ssml {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// "text@voice*rate+pause" of each part, without what is usual.
std::string parts_of(const std::string& ssml, bool phonemes = true) {
  std::string all;
  for (const Part& part : parse(ssml, {.phonemes = phonemes}).parts) {
    all += concat(all.empty() ? "" : "|", part.text);
    if (!part.voice.empty()) all += "@" + part.voice;
    if (part.rate != 1) all += concat("*", part.rate);
    if (part.pause_after_s > 0) all += concat("+", part.pause_after_s);
  }
  return all;
}
std::string speak(const std::string& inside) { return parts_of("<speak>" + inside + "</speak>"); }

std::string refusal(const std::string& ssml, bool phonemes = true) {
  try {
    parts_of(ssml, phonemes);
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), StartsWith("text: ")) << ssml;
    EXPECT_TRUE(error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::unsupported ||
                error.code() == ErrorCode::too_large)
        << ssml;
    return error.message();
  }
  return "accepted";
}
std::string refused(const std::string& inside) { return refusal("<speak>" + inside + "</speak>"); }

TEST(Ssml, TextIsOnePartWithOneSpaceBetweenWords) {
  EXPECT_EQ(speak(" Hello \n\t there. "), "Hello there.");
  EXPECT_EQ(speak("a &amp; b &lt;c&gt; &#233;&#x1F41F; <![CDATA[<x> & y]]><!-- no --><?no?>"),
            "a & b <c> \xc3\xa9\xf0\x9f\x90\x9f <x> & y");
  EXPECT_EQ(
      parts_of("<?xml version=\"1.0\"?>\n<speak version='1.1' xmlns='http://www.w3.org/2001/10/synthesis' "
               "xml:lang='en-US'>Hi.</speak>"),
      "Hi.");
}

TEST(Ssml, ParagraphsAndSentencesAreLines) {
  EXPECT_EQ(speak("<p>One</p> <p><s>Two.</s><s>Three</s></p>four"), "One.\nTwo.\nThree.\nfour");
}

TEST(Ssml, BreaksAreSilenceBehindAPart) {
  EXPECT_EQ(speak("One<break time='500ms'/>two<break time=\"1.5s\"/>"), "One+0.5|two+1.5");
  EXPECT_EQ(speak("<break time='2s'/>One"), "+2|One");
  EXPECT_EQ(speak("a<break/>b<break strength='x-strong'/>c<break strength='none'/> d"), "a+0.5|b+1.5|c d");
  EXPECT_EQ(speak("a<break time='1s'/> <break time='250ms' strength='weak'/>b"), "a+1.25|b");
  for (const char* bad : {"time='1'", "time='-1s'", "time='11s'", "time='s'", "time='1e3ms'", "time='nans'",
                          "strength='big'", "time='1s' size='3'"})
    EXPECT_THAT(refused(concat("a<break ", bad, "/>")), HasSubstr("<break>: ")) << bad;
  std::string many = "a";
  for (int i = 0; i < 61; ++i) many += "<break time='10s'/>";
  EXPECT_THAT(refused(many), HasSubstr("at most 600 seconds"));
}

TEST(Ssml, VoicesAndRatesHoldWithinTheirElements) {
  EXPECT_EQ(speak("a <voice name='v'>b <prosody rate='fast'>c</prosody> d</voice> e"),
            "a|b@v|c@v*1.25|d@v|e");
  EXPECT_EQ(speak("<prosody rate='200%'>a<prosody rate='-50%'>b</prosody></prosody>"), "a*2|b");
  EXPECT_EQ(speak("<prosody rate='1.5'>a</prosody><prosody rate='+20%'>b</prosody>"), "a*1.5|b*1.2");
  for (const char* bad : {"rate='0.1'", "rate='500%'", "rate='quick'", "rate='+1'", "rate=''", "pitch='high'",
                          "rate='fast' volume='loud'"})
    EXPECT_THAT(refused(concat("<prosody ", bad, ">a</prosody>")), HasSubstr("<prosody>: ")) << bad;
  EXPECT_THAT(refused("<prosody rate='4'><prosody rate='2'>a</prosody></prosody>"), HasSubstr("within"));
  EXPECT_THAT(refused("<voice gender='female'>a</voice>"), HasSubstr("name is missing"));
}

TEST(Ssml, SayAsWritesWords) {
  const auto as = [](const char* what, const char* text, const char* format = "") {
    return say_as(what, format, text);
  };
  EXPECT_EQ(as("characters", "AB 1\xc3\xa9"), "A, B, one, \xc3\xa9");
  EXPECT_EQ(as("characters", "e\xcc\x81u"), "e\xcc\x81, u");
  EXPECT_EQ(as("digits", "2024"), "two zero two four");
  EXPECT_EQ(as("telephone", "+1 (555) 010-9"), "plus one, five five five, zero one zero, nine");
  EXPECT_EQ(as("cardinal", "-1,234"), "minus one thousand two hundred thirty-four");
  EXPECT_EQ(as("number", "3.14"), "three point one four");
  EXPECT_EQ(as("ordinal", "22"), "twenty-second");
  EXPECT_EQ(as("date", "3/5/2025", "mdy"), "March fifth, twenty twenty-five");
  EXPECT_EQ(as("date", "05.03.2025", "dmy"), as("date", "2025-03-05", "ymd"));
  EXPECT_EQ(as("date", "2025-03-05"), as("date", "2025-03-05", "ymd"));
  EXPECT_EQ(as("date", "3/2025", "my"), "March twenty twenty-five");
  EXPECT_EQ(as("date", "1905", "y"), "nineteen oh five");
  EXPECT_EQ(speak("Room <say-as interpret-as='digits'>12</say-as>."), "Room one two.");
  for (const char* bad :
       {"'digits'>a", "'digits'>", "'cardinal'>1.2.3", "'ordinal'>-3", "'ordinal'>1.5",
        "'date' format='mdy'>13/1/2025", "'date' format='mdy'>1/2025", "'date' format='x'>1", "'time'>3pm",
        "'digits' format='x'>1", "'telephone'>call me", "'cardinal'>99999x", "'characters'>a<break/>"})
    EXPECT_THAT(refused(concat("<say-as interpret-as=", bad, "</say-as>")), HasSubstr("<")) << bad;
}

TEST(Ssml, AliasesAndPhonemesReplaceWords) {
  EXPECT_EQ(speak("The <sub alias='World Wide Web'>WWW</sub> is old."), "The World Wide Web is old.");
  EXPECT_EQ(speak("A <phoneme alphabet='ipa' ph='f\xc9\xaa\xca\x83'>fish</phoneme>."),
            "A [fish](/f\xc9\xaa\xca\x83/).");
  EXPECT_THAT(refusal("<speak><phoneme ph='x'>y</phoneme></speak>", false), HasSubstr("reads no phonemes"));
  for (const char* bad :
       {"ph='a/)'>y", "ph=''>y", "alphabet='x-sampa' ph='a'>y", "ph='a'>", "ph='a'>[y]", ">y"})
    EXPECT_THAT(refused(concat("<phoneme ", bad, "</phoneme>")), HasSubstr("<phoneme>: ")) << bad;
}

TEST(Ssml, WhatIsNotSpokenHereIsRefusedByName) {
  for (const char* name : {"emphasis", "audio", "lang", "mark", "lexicon", "amazon:effect", "speak", "SPEAK"})
    EXPECT_THAT(refused(concat("a<", name, "/>b")), HasSubstr(concat("<", name, ">"))) << name;
  EXPECT_THAT(refused("\n\n<s title='x'>a</s>"), HasSubstr("line 3 of the SSML: <s>: the attribute title"));
  EXPECT_THAT(refusal("<speak version='2.0'>a</speak>"), HasSubstr("version"));
}

TEST(Ssml, LanguagesAreReportedOnce) {
  const Document document = parse("<speak xml:lang='en'>a<p xml:lang='fr'>b</p></speak>", {});
  ASSERT_EQ(document.unused.size(), 1u);
  EXPECT_THAT(document.unused[0], StartsWith("xml:lang: "));
}

TEST(Ssml, HostileXmlIsRefused) {
  EXPECT_THAT(refusal("Hello."), HasSubstr("not well-formed"));
  for (const char* bad : {"", " ", "<speak>", "<speak>a</speak>b", "<speak>a</p></speak>",
                          "<speak><p>a</speak>", "<speak>a & b</speak>", "<speak a='1' a='2'>x</speak>",
                          "<speak>&nbsp;</speak>", "<speak>&#0;</speak>", "<speak>\x01</speak>",
                          "<speak></speak>", "<speak> </speak>", "<p>a</p>", "<x:speak>a</x:speak>"})
    EXPECT_NE(refusal(bad), "accepted") << bad;
  EXPECT_NE(refusal("<speak>\xff</speak>"), "accepted");
  EXPECT_NE(refusal(std::string("<speak>\0</speak>", 16)), "accepted");
  EXPECT_NE(refusal("<?xml version='1.0' encoding='UTF-16'?><speak>a</speak>", true), "");
  // A billion laughs, a quadratic blow-up, files and addresses: nothing is expanded or opened.
  std::string laughs = "<!DOCTYPE speak [<!ENTITY a \"ha\">";
  for (char name = 'b'; name < 'z'; ++name) {
    const std::string one = concat("&", std::string(1, static_cast<char>(name - 1)), ";");
    laughs += concat("<!ENTITY ", std::string(1, name), " \"", one, one, one, one, one, one, one, one, "\">");
  }
  EXPECT_THAT(refusal(laughs + "]><speak>&y;</speak>"), HasSubstr("<!DOCTYPE>"));
  EXPECT_THAT(refusal("<!DOCTYPE speak SYSTEM 'file:///etc/passwd'><speak>a</speak>"),
              HasSubstr("<!DOCTYPE>"));
  EXPECT_THAT(refusal("<!DOCTYPE s [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><speak>&x;</speak>"),
              HasSubstr("<!DOCTYPE>"));
  std::string deep, closed;
  for (int i = 0; i < 100'000 / 8; ++i) deep += "<prosody rate='1'>";
  EXPECT_THAT(refused(deep), HasSubstr("at most 32 elements"));
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "a<break time='1ms'/>";
  EXPECT_THAT(refused(many), HasSubstr("at most 1000 parts"));
  EXPECT_THAT(refused(std::string(300 << 10, 'a')), HasSubstr("at most 262144 bytes"));
}

}  // namespace
}  // namespace shoal::ssml
