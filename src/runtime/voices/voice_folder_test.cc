#include "runtime/voices/voice_folder.h"

#include <cmath>
#include <gmock/gmock.h>
#include <thread>

#include "audio/encoder.h"
#include "base/file.h"
#include "runtime/voices/voices_testing.h"

namespace shoal::runtime {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string folder_clip(double seconds = 0.5, float amplitude = 0.5f,
                        audio::Format format = audio::Format::wav) {
  std::vector<float> samples(static_cast<size_t>(16000 * seconds));
  for (size_t i = 0; i < samples.size(); ++i)
    samples[i] = amplitude * static_cast<float>(std::sin(0.1 * static_cast<double>(i)));
  const std::vector<std::byte> bytes = audio::encode(format, {.sample_rate_hz = 16000}, samples);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class VoiceFolderTest : public InTemporaryFolder {
 protected:
  std::string references() const { return path("references"); }
  ErrorCode add_fails(const std::string& name, const std::string& audio, const std::string& text) {
    return code_of([&] { voices().add(name, audio, text); });
  }
  VoiceFolder voices() const { return VoiceFolder(references()); }
  const std::string sound_ = folder_clip();
};

// Another process replaces the voice after its words were read and before its sound is.
TEST_F(VoiceFolderTest, ALookSeesOneVoiceWhenAnotherTakesItsNameMeanwhile) {
  const std::string other_sound = folder_clip(0.6);
  VoiceFolder folder = voices();
  folder.add("bob", sound_, "sound");
  int looks = 0;
  std::string words, audio;
  const auto look = [&](auto meanwhile) {
    return [&, meanwhile] {
      const VoiceClip clip = folder.clips("bob").at(0);
      words = clip.transcript;
      if (++looks == 1) meanwhile();
      audio = read_file(clip.audio_path, 1 << 20);
    };
  };
  folder.look_at("bob", look([&] {
                   folder.remove("bob");
                   folder.add("bob", other_sound, "other sound");
                 }));
  EXPECT_EQ(looks, 2);
  EXPECT_EQ(words, "other sound");
  EXPECT_EQ(audio, other_sound);
  looks = 0;
  EXPECT_EQ(code_of([&] { folder.look_at("bob", look([&] { folder.remove("bob"); })); }),
            ErrorCode::not_found);
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(code_of([&] {
              folder.look_at("bob", [&] {
                if (folder.has("bob")) return folder.remove("bob");
                folder.add("bob", sound_, "sound");
              });
            }),
            ErrorCode::unavailable);
}

TEST_F(VoiceFolderTest, AddListGetRenameRemove) {
  VoiceFolder folder = voices();
  EXPECT_THAT(folder.list(), IsEmpty());  // no such folder
  folder.add("bob", sound_, "Words of Bob.\n");
  folder.add("Ann-Marie_2 x", sound_, "Größe 東京");
  ASSERT_EQ(folder.list().size(), 2u);
  EXPECT_EQ(folder.list()[0].name, "Ann-Marie_2 x");
  EXPECT_EQ(folder.get("bob").clips, 1);
  EXPECT_THAT(folder.get("bob").transcripts, ElementsAre("Words of Bob.\n"));  // verbatim
  EXPECT_EQ(read_file(path("references/bob/sample.wav"), 1 << 20), sound_);
  EXPECT_EQ(read_file(path("references/bob/sample.lab"), 1 << 20), "Words of Bob.\n");
  EXPECT_EQ(folder.clips("bob")[0].audio_path, path("references/bob/sample.wav"));

  EXPECT_EQ(add_fails("bob", sound_, "Other words."), ErrorCode::already_exists);
  EXPECT_THAT(folder.get("bob").transcripts, ElementsAre("Words of Bob.\n"));
  folder.rename("bob", "rob");
  EXPECT_EQ(code_of([&] { folder.get("bob"); }), ErrorCode::not_found);
  EXPECT_EQ(folder.get("rob").clips, 1);
  EXPECT_EQ(code_of([&] { folder.rename("rob", "Ann-Marie_2 x"); }), ErrorCode::already_exists);
  EXPECT_EQ(code_of([&] { folder.rename("rob", "rob"); }), ErrorCode::already_exists);
  EXPECT_EQ(code_of([&] { folder.rename("bob", "tim"); }), ErrorCode::not_found);
  folder.remove("rob");
  EXPECT_EQ(code_of([&] { folder.remove("rob"); }), ErrorCode::not_found);
  EXPECT_THAT(tree(),
              ElementsAre("references", "references/Ann-Marie_2 x", "references/Ann-Marie_2 x/sample.lab",
                          "references/Ann-Marie_2 x/sample.wav"));
}

TEST_F(VoiceFolderTest, TheFileEndingFollowsTheContent) {
  VoiceFolder folder = voices();
  folder.add("flac", folder_clip(0.5, 0.5f, audio::Format::flac), "Words.");
  folder.add("opus", folder_clip(0.5, 0.5f, audio::Format::opus), "Words.");
  folder.add("mp3", folder_clip(0.5, 0.5f, audio::Format::mp3), "Words.");
  EXPECT_THAT(folder.clips("flac")[0].audio_path, testing::EndsWith("/sample.flac"));
  EXPECT_THAT(folder.clips("opus")[0].audio_path, testing::EndsWith("/sample.ogg"));
  EXPECT_THAT(folder.clips("mp3")[0].audio_path, testing::EndsWith("/sample.mp3"));
}

TEST_F(VoiceFolderTest, UnusableClipsAreRefusedAndLeaveNothing) {
  fs::create_directories(references());
  EXPECT_EQ(add_fails("ann", "", "Words."), ErrorCode::corrupt_file);
  EXPECT_EQ(add_fails("ann", "this is not sound", "Words."), ErrorCode::corrupt_file);
  EXPECT_EQ(add_fails("ann", sound_.substr(0, 30), "Words."), ErrorCode::corrupt_file);
  EXPECT_EQ(add_fails("ann", folder_clip(2, 0), "Words."), ErrorCode::invalid_argument);  // silence
  EXPECT_EQ(add_fails("ann", folder_clip(0.1), "Words."), ErrorCode::invalid_argument);   // too short
  EXPECT_EQ(add_fails("ann", folder_clip(121), "Words."), ErrorCode::too_large);          // too long
  EXPECT_EQ(add_fails("ann", sound_, ""), ErrorCode::invalid_argument);
  EXPECT_EQ(add_fails("ann", sound_, " \r\n\t"), ErrorCode::invalid_argument);
  EXPECT_EQ(add_fails("ann", sound_, "caf\xe9"), ErrorCode::invalid_argument);       // Latin-1
  EXPECT_EQ(add_fails("ann", sound_, "\xed\xa0\x80"), ErrorCode::invalid_argument);  // a surrogate
  EXPECT_EQ(add_fails("ann", sound_, std::string(65537, 'a')), ErrorCode::too_large);
  EXPECT_THAT(tree(), ElementsAre("references"));
  voices().add("ann", sound_, std::string(65536, 'a'));
}

TEST_F(VoiceFolderTest, HostileNamesNeverLeaveTheFolder) {
  VoiceFolder folder = voices();
  folder.add("ann", sound_, "Words.");
  write(path("secret/clip.wav"), sound_);
  write(path("secret/clip.lab"), "A secret.");
  const std::vector<std::string> before = tree();
  const std::vector<std::string> names = {"",
                                          ".",
                                          "..",
                                          "../secret",
                                          "../references/ann",
                                          "ann/",
                                          "/ann",
                                          "ann/../ann",
                                          path("secret"),
                                          "./ann",
                                          ".ann",
                                          "ann.",
                                          "ann\n",
                                          "ann\t",
                                          std::string("ann\0", 4),
                                          std::string("ann\0/../..", 10),
                                          "a\\b",
                                          "..\\secret",
                                          "a:b",
                                          "a*",
                                          "~",
                                          "%2e%2e%2fsecret",
                                          "änn",
                                          "ann\xe2\x80\x8b",           // zero-width space
                                          "\xef\xbc\x8e\xef\xbc\x8e",  // full-width dots
                                          "\xc0\xae\xc0\xae/",         // overlong dots
                                          "\xff",
                                          std::string(256, 'a'),
                                          std::string(1 << 20, 'a')};
  for (const std::string& name : names) {
    SCOPED_TRACE(name.substr(0, 40));
    EXPECT_EQ(code_of([&] { folder.get(name); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { folder.clips(name); }), ErrorCode::invalid_argument);
    EXPECT_EQ(add_fails(name, sound_, "Words."), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { folder.rename(name, "new"); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { folder.rename("ann", name); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { folder.remove(name); }), ErrorCode::invalid_argument);
  }
  EXPECT_EQ(tree(), before);
  try {
    check_voice_name(std::string(1 << 20, '\n'));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_LT(error.message().size(), 200u);
    EXPECT_EQ(error.message().find('\n'), std::string::npos);
  }
}

TEST_F(VoiceFolderTest, OddButLegalNamesAreKeptExactly) {
  VoiceFolder folder = voices();
  for (const std::string& name :
       {std::string("ann"), std::string("ann "), std::string(" ann"), std::string(" "), std::string("-"),
        std::string("--help"), std::string(255, 'a')}) {
    folder.add(name, sound_, "Words of '" + name + "'.");
    EXPECT_THAT(folder.get(name).transcripts, ElementsAre("Words of '" + name + "'."));
  }
  EXPECT_EQ(folder.list().size(), 7u);
  folder.remove("ann ");
  EXPECT_EQ(folder.get("ann").clips, 1);
}

TEST_F(VoiceFolderTest, ReadsTheOfficialLayout) {
  write(path("references/ann/b.mp3"), sound_);  // what a file is, its bytes say
  write(path("references/ann/b.lab"), "second");
  write(path("references/ann/a.WAV"), sound_);
  write(path("references/ann/a.lab"), "first\n");
  write(path("references/ann/no_words.wav"), sound_);
  write(path("references/ann/._a.wav"), "left by another system");
  write(path("references/ann/._a.lab"), "so is this");
  write(path("references/ann/notes.lab"), "no sound");
  write(path("references/empty/notes.txt"), "no clip");
  write(path("references/.shoal-1-2-3.tmp/sample.wav"), sound_);  // in the making
  write(path("references/.shoal-1-2-3.tmp/sample.lab"), "Words.");
  write(path("references/clip.wav"), sound_);
  write(path("references/clip.lab"), "in no folder");
  EXPECT_THAT(voices().get("ann").transcripts, ElementsAre("first\n", "second"));
  EXPECT_THAT(voices().names(), ElementsAre("ann"));
  EXPECT_EQ(code_of([&] { voices().get("empty"); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { voices().remove("empty"); }), ErrorCode::not_found);
  EXPECT_TRUE(fs::exists(path("references/empty/notes.txt")));
}

TEST_F(VoiceFolderTest, OneBadVoiceDoesNotHideTheOthers) {
  voices().add("ann", sound_, "Words.");
  for (const auto& [name, words] :
       {std::pair{"big", std::string(65537, 'x')}, {"latin", "caf\xe9"}, {"mute", " "}}) {
    write(path(std::string("references/") + name + "/clip.wav"), sound_);
    write(path(std::string("references/") + name + "/clip.lab"), words);
  }
  EXPECT_EQ(code_of([&] { voices().get("big"); }), ErrorCode::too_large);
  EXPECT_EQ(code_of([&] { voices().get("latin"); }), ErrorCode::invalid_argument);
  EXPECT_THAT(voices().names(), ElementsAre("ann", "big", "latin", "mute"));
  ASSERT_EQ(voices().list().size(), 1u);
  EXPECT_EQ(voices().list()[0].name, "ann");
  EXPECT_THAT(log_, testing::Contains(HasSubstr("clip.lab")));
  voices().remove("big");
  EXPECT_THAT(voices().names(), ElementsAre("ann", "latin", "mute"));
}

TEST_F(VoiceFolderTest, LinksAreReadAndNeverDeletedThrough) {
  write(path("shared/clip.wav"), sound_);
  write(path("shared/clip.lab"), "Shared words.");
  fs::create_directories(references());
  fs::create_directory_symlink(path("shared"), path("references/ann"));
  EXPECT_THAT(voices().get("ann").transcripts, ElementsAre("Shared words."));
  EXPECT_EQ(add_fails("ann", sound_, "Words."), ErrorCode::already_exists);
  EXPECT_EQ(code_of([&] { voices().rename("ann", "bob"); }), ErrorCode::invalid_argument);
  voices().remove("ann");
  EXPECT_FALSE(fs::is_symlink(path("references/ann")));
  EXPECT_EQ(read_file(path("shared/clip.lab"), 100), "Shared words.");
  // A link inside a voice.
  voices().add("bob", sound_, "Words.");
  fs::create_directory_symlink(path("shared"), path("references/bob/more"));
  voices().remove("bob");
  EXPECT_EQ(read_file(path("shared/clip.lab"), 100), "Shared words.");
  // A name that somebody else uses: nothing is replaced but an empty folder.
  write(path("references/file"), "mine");
  write(path("references/notes/n.txt"), "mine");
  fs::create_symlink(path("nowhere"), path("references/link"));
  fs::create_directories(path("references/blank"));
  for (const char* taken : {"file", "notes", "link"})
    EXPECT_EQ(add_fails(taken, sound_, "Words."), ErrorCode::already_exists) << taken;
  voices().add("blank", sound_, "Words.");
  EXPECT_EQ(code_of([&] { voices().rename("blank", "file"); }), ErrorCode::already_exists);
  EXPECT_EQ(read_file(path("references/file"), 100), "mine");
}

TEST_F(VoiceFolderTest, AReadOnlyFolderIsReported) {
  write(path("references"), "not a folder");
  EXPECT_EQ(add_fails("ann", sound_, "Words."), ErrorCode::io);
  EXPECT_THAT(voices().list(), IsEmpty());
  EXPECT_EQ(code_of([&] { VoiceFolder("/proc/shoal").add("ann", sound_, "Words."); }), ErrorCode::io);
}

TEST_F(VoiceFolderTest, OfManyConcurrentAddsOneGetsTheName) {
  std::atomic<int> added{0}, refused{0};
  {
    std::vector<std::jthread> threads;
    for (int n = 0; n < 4; ++n) {
      threads.emplace_back([&, n] {
        try {
          voices().add("ann", sound_, "Words of " + std::to_string(n));
          ++added;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::already_exists);
          ++refused;
        }
      });
    }
  }
  EXPECT_EQ(added, 1);
  EXPECT_EQ(refused, 3);
  EXPECT_THAT(tree(), ElementsAre("references", "references/ann", "references/ann/sample.lab",
                                  "references/ann/sample.wav"));
}

TEST_F(VoiceFolderTest, AVoiceHasSeveralClipsInTheirOrderAndANote) {
  VoiceFolder folder = voices();
  const NewVoice two{.clips = {{sound_, "One."}, {folder_clip(0.6, 0.5f, audio::Format::flac), "Two."}},
                     .note = "{}"};
  folder.create("ann", two);
  EXPECT_THAT(folder.get("ann").transcripts, ElementsAre("One.", "Two."));
  EXPECT_GT(folder.get("ann").added_at_s, 1'700'000'000);
  EXPECT_EQ(folder.note("ann"), "{}");
  folder.set_note("ann", "other");
  EXPECT_EQ(folder.note("ann"), "other");
  folder.rename("ann", "bob");
  EXPECT_EQ(folder.note("bob"), "other");
  EXPECT_THAT(tree(), ElementsAre("references", "references/bob", "references/bob/sample100.lab",
                                  "references/bob/sample100.wav", "references/bob/sample101.flac",
                                  "references/bob/sample101.lab", "references/bob/shoal-note.json"));
  folder.add("ann", sound_, "Words.");
  EXPECT_EQ(folder.note("ann"), "");
}

TEST_F(VoiceFolderTest, NotesAreOfVoicesThatAreThere) {
  VoiceFolder folder = voices();
  folder.add("ann", sound_, "Words.");
  for (const char* name : {"bob", "..", ""}) {
    EXPECT_THROW(folder.set_note(name, "x"), Error) << name;
    EXPECT_THROW(folder.note(name), Error) << name;
  }
  EXPECT_EQ(code_of([&] { folder.set_note("ann", std::string(kMaxVoiceNoteBytes + 1, 'x')); }),
            ErrorCode::too_large);
  EXPECT_EQ(code_of([&] { folder.create("bob", {}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { folder.create("bob", {.clips = {{sound_, "A."}, {"no sound", "B."}}}); }),
            ErrorCode::corrupt_file);
  fs::create_directory_symlink(references() + "/ann", references() + "/link");
  EXPECT_EQ(code_of([&] { folder.set_note("link", "x"); }), ErrorCode::invalid_argument);
  EXPECT_THAT(tree(), testing::Not(testing::Contains(HasSubstr("shoal-note"))));
}

// While a note is replaced, its readers see one of them whole, and a voice that is removed takes it along.
TEST_F(VoiceFolderTest, NotesChangeAtOnce) {
  const std::string notes[] = {std::string(20'000, 'a'), std::string(30'000, 'b')};
  voices().create("ann", {.clips = {{sound_, "Words."}}, .note = notes[0]});
  std::atomic<bool> done{false};
  std::jthread reader([&] {
    while (!done) {
      const std::string note = voices().note("ann");
      EXPECT_TRUE(note == notes[0] || note == notes[1]) << note.size();
    }
  });
  {
    std::vector<std::jthread> writers;
    for (const std::string& note : notes) {
      writers.emplace_back([&] {
        for (int i = 0; i < 30; ++i) voices().set_note("ann", note);
      });
    }
  }
  done = true;
  reader.join();
  EXPECT_EQ(tree().size(), 5u) << "nothing unfinished is left";
  voices().remove("ann");
  EXPECT_THAT(tree(), ElementsAre("references"));
}

// While voices come, go and change their names, a reader sees each whole or not at all.
TEST_F(VoiceFolderTest, ReadersNeverSeeHalfAVoice) {
  std::atomic<bool> done{false};
  std::jthread reader([&] {
    while (!done) {
      for (const VoiceInfo& voice : voices().list()) EXPECT_THAT(voice.transcripts, ElementsAre("Words."));
      for (const char* name : {"ann", "bob"}) {
        try {
          EXPECT_EQ(voices().get(name).clips, 1);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::not_found);
        }
      }
    }
  });
  std::vector<std::jthread> writers;
  for (int n = 0; n < 2; ++n) {
    writers.emplace_back([&] {
      for (int i = 0; i < 30; ++i) {
        for (const auto& change : std::vector<std::function<void(VoiceFolder&)>>{
                 [&](VoiceFolder& f) { f.add("ann", sound_, "Words."); },
                 [](VoiceFolder& f) { f.rename("ann", "bob"); }, [](VoiceFolder& f) { f.remove("bob"); }}) {
          try {
            VoiceFolder folder = voices();
            change(folder);
          } catch (const Error& error) {
            EXPECT_THAT(error.code(), testing::AnyOf(ErrorCode::not_found, ErrorCode::already_exists))
                << error.what();
          }
        }
      }
    });
  }
  writers.clear();
  done = true;
  reader.join();
  for (const char* name : {"ann", "bob"}) {
    try {
      voices().remove(name);
    } catch (const Error&) {
    }
  }
  EXPECT_THAT(tree(), ElementsAre("references"));
}

}  // namespace
}  // namespace shoal::runtime
