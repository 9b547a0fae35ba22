// shoal-phonemizer: texts in, IPA out, by espeak-ng (text/phonemes/espeak_protocol.h).
//
// A program of its own because libespeak-ng keeps one global state, is not safe to call from several threads,
// and is under the GPL: this program is the only one of Shoal that links it. It is started by EspeakPool,
// speaks to nobody else, and ends when its input ends.
#include <cstdio>
#include <cstring>
#include <espeak-ng/speak_lib.h>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <unistd.h>

#include "text/phonemes/espeak_protocol.h"

namespace {

using shoal::phonemes::Message;
using shoal::phonemes::MessageKind;

constexpr int kMostSecondsPerRequest = 60;  // then SIGALRM kills us, in case nobody else does

bool read_exactly(int fd, std::string& out, size_t bytes) {
  out.resize(bytes);
  for (size_t done = 0; done < bytes;) {
    const ssize_t got = ::read(fd, out.data() + done, bytes - done);
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

bool write_all(int fd, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t put = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (put <= 0) return false;
    done += static_cast<size_t>(put);
  }
  return true;
}

// The library's output must not mix with our messages.
int take_standard_output() {
  const int answers = ::dup(STDOUT_FILENO);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO);
  return answers;
}

// share/ beside our bin/, if espeak-ng's data were installed there with us; empty: those of the system.
std::string own_data_folder() {
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return {};
  const std::filesystem::path share = program.parent_path().parent_path() / "share";
  return std::filesystem::is_directory(share / "espeak-ng-data", failed) ? share.string() : std::string();
}

Message start_espeak() {
  const std::string data = own_data_folder();
  const int rate = espeak_Initialize(AUDIO_OUTPUT_RETRIEVAL, 0, data.empty() ? nullptr : data.c_str(),
                                     espeakINITIALIZE_DONT_EXIT);
  if (rate <= 0) return {MessageKind::failed, {"espeak-ng finds no data; install espeak-ng-data"}};
  const char* data_path = nullptr;
  return {MessageKind::ok, {espeak_Info(&data_path)}};
}

// By properties, and checked: a name that is not found leaves the last voice in place.
bool choose_voice(const std::string& language) {
  espeak_VOICE wanted{};
  wanted.languages = language.c_str();
  if (espeak_SetVoiceByProperties(&wanted) != EE_OK) return false;
  const espeak_VOICE* chosen = espeak_GetCurrentVoice();
  // Entries of one priority byte and a name, each ended by a zero; one zero byte more ends the list.
  for (const char* entry = chosen->languages; *entry; entry += 1 + std::strlen(entry + 1) + 1) {
    if (language == entry + 1) return true;
  }
  return false;
}

std::string to_ipa(const std::string& text) {
  constexpr int kIpaWithTies = 0x02 | 0x80 | 0x361 << 8;
  std::string ipa;
  const void* rest = text.c_str();
  while (rest) {
    const char* clause = espeak_TextToPhonemes(&rest, espeakCHARS_UTF8, kIpaWithTies);
    if (!clause || !*clause) continue;
    if (!ipa.empty()) ipa += ' ';
    ipa += clause;
  }
  return ipa;
}

Message answer(const Message& request, std::string& voice) {
  if (request.strings.empty()) return {MessageKind::failed, {"a request without a language"}};
  const std::string& language = request.strings[0];
  if (language.empty() || language != voice) {
    voice.clear();
    if (language.empty() || !choose_voice(language))
      return {MessageKind::no_such_language, {"espeak-ng has no voice for it"}};
    voice = language;
  }
  Message result;
  size_t bytes = 0;
  for (size_t i = 1; i < request.strings.size(); ++i) {
    result.strings.push_back(to_ipa(request.strings[i]));
    bytes += result.strings.back().size() + shoal::phonemes::kLengthBytes;
  }
  if (bytes >= shoal::phonemes::kMaxMessageBytes) return {MessageKind::failed, {"the phonemes are too long"}};
  return result;
}

}  // namespace

int main() {
  if (::isatty(STDIN_FILENO)) {
    std::fputs("shoal-phonemizer is started by Shoal itself; to see phonemes: shoal phonemize \"text\"\n",
               stderr);
    return 2;
  }
  const int answers = take_standard_output();
  const Message hello = start_espeak();
  if (!write_all(answers, pack(hello)) || hello.kind != MessageKind::ok) return 1;

  std::string voice;
  std::string bytes;
  while (read_exactly(STDIN_FILENO, bytes, shoal::phonemes::kLengthBytes)) {
    const uint32_t length = shoal::phonemes::read_length(bytes);
    if (length > shoal::phonemes::kMaxMessageBytes || !read_exactly(STDIN_FILENO, bytes, length)) return 1;
    const std::optional<Message> request = shoal::phonemes::unpack(bytes);
    if (!request) return 1;
    ::alarm(kMostSecondsPerRequest);
    const Message result = answer(*request, voice);
    ::alarm(0);
    if (!write_all(answers, pack(result))) return 1;
  }
  return 0;
}
