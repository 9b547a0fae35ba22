#include "bench/load/generator.h"

#include <algorithm>
#include <cstdio>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/temporary_folder_testing.h"
#include "bench/load/fake_server_testing.h"
#include "bench/load/level_figures.h"
#include "bench/load/sounds_testing.h"

namespace shoal::load {
namespace {

using testing::HasSubstr;

constexpr int64_t kSecond = 24'000;  // frames

// An answer of one piece, and what begins one of several.
std::string whole_answer(int64_t frames) {
  const std::string body = WavHeader().text() + samples_of(frames);
  return "HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}
std::string stream_chunk(const std::string& bytes) {
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return size + bytes + "\r\n";
}
std::string stream_head() {
  return "HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\nTransfer-Encoding: chunked\r\n\r\n" +
         stream_chunk(WavHeader().text());
}
std::string stream_sound(double seconds, int16_t value = 8000) {
  return stream_chunk(samples_of(static_cast<int64_t>(seconds * kSecond), value));
}
const std::string kStreamEnd = "0\r\n\r\n";

GeneratorOptions options_for(const std::string& url) {
  return {.target = make_target(url, "auto"),
          .question = {.model = "tts-1", .texts = {"Thirty characters of a text."}},
          .silence = 0.003,
          .timeout_s = 20};
}

std::vector<RequestRecord> ask(const GeneratorOptions& options, const LevelPlan& plan) {
  std::vector<RequestRecord> records;
  Generator(options).run(plan, [&](RequestRecord&& record) { records.push_back(std::move(record)); });
  return records;
}

std::string failure_at(const GeneratorOptions& options) {
  const std::vector<RequestRecord> records = ask(options, {.requests = 1});
  return records.at(0).failure ? records[0].failure->kind + ": " + records[0].failure->detail : "";
}

// How far a time is from what the server did. The machine may be busy: of many requests the best one shows
// what the program itself adds.
TEST(Generator, MeasuresTheFirstSoundToAMillisecond) {
  const FakeServer server([](int) {
    return Script{{2, stream_head()}, {30, stream_sound(0.3, 0)}, {5, stream_sound(0.2)}, {1, kStreamEnd}};
  });
  const std::vector<RequestRecord> records = ask(options_for(server.url()), {.requests = 20});
  double sound_off_ms = 1e9, audible_off_ms = 1e9;
  for (int i = 0; i < 20; ++i) {
    const RequestRecord& record = records[static_cast<size_t>(i)];
    ASSERT_FALSE(record.failure) << record.failure->detail;
    const RequestFigures figures = figures_of(record);
    const auto true_ms = static_cast<double>(server.sent_us(i, 1) - record.due_us) / 1e3;
    EXPECT_GE(*figures.first_sound_ms, true_ms);
    sound_off_ms = std::min(sound_off_ms, *figures.first_sound_ms - true_ms);
    audible_off_ms = std::min(audible_off_ms, *figures.first_audible_ms - (true_ms + 300));
    EXPECT_EQ(figures.leading_silence_ms, 300);
    EXPECT_EQ(figures.sound_s, 0.5);
  }
  EXPECT_LT(sound_off_ms, 1);
  EXPECT_LT(audible_off_ms, 1);
}

TEST(Generator, SeesStallsAsUnderruns) {
  // 0.1 s of sound, silence on the line for half a second, the rest: every player runs dry, once.
  const FakeServer server([](int) {
    return Script{{0, stream_head()}, {0, stream_sound(0.25)}, {800, stream_sound(0.5)}, {0, kStreamEnd}};
  });
  for (const RequestRecord& record : ask(options_for(server.url()), {.requests = 2}))
    for (const PlayerFigures& player : figures_of(record).players) EXPECT_EQ(player.underruns, 1);
  const FakeServer smooth([](int) {
    return Script{{0, stream_head()}, {0, stream_sound(2)}, {10, stream_sound(2)}, {0, kStreamEnd}};
  });
  for (const RequestRecord& record : ask(options_for(smooth.url()), {.requests = 2}))
    for (const PlayerFigures& player : figures_of(record).players) EXPECT_EQ(player.underruns, 0);
}

TEST(Generator, CountsEachDroppedAnswer) {
  const FakeServer server([](int number) {
    if (number == 60) return Script{{0, ""}};
    if (number == 150) return Script{{0, stream_head() + stream_sound(0.1)}, {0, ""}};
    return Script{{0, whole_answer(2'400)}};
  });
  LevelTally tally({});
  for (const RequestRecord& record : ask(options_for(server.url()), {.users = 4, .requests = 200}))
    tally.add(record, figures_of(record));
  const LevelFigures figures = tally.figures({}, {});
  EXPECT_EQ(figures.completed, 198);
  EXPECT_EQ(figures.failures.at("no_answer").count, 1);
  EXPECT_EQ(figures.failures.at("cut_off").count, 1);
  EXPECT_LE(server.connections(), 6) << "connections are used again";
}

TEST(Generator, AnOpenLoopAsksWithoutWaitingForAnswers) {
  const FakeServer server([](int) { return Script{{400, whole_answer(2'400)}}; });
  std::vector<RequestRecord> records;
  Generator generator(options_for(server.url()));
  const LevelRun run = generator.run({.rate_per_s = 200, .requests = 40, .seed = 3},
                                     [&](RequestRecord&& record) { records.push_back(std::move(record)); });
  ASSERT_EQ(records.size(), 40u);
  EXPECT_GT(run.most_open, 20) << "40 requests take 0.2 s to begin, each 0.4 s to answer";
  int64_t last_due_us = 0;
  for (const RequestRecord& record : records) {
    EXPECT_FALSE(record.failure);
    EXPECT_GE(record.begun_us, record.due_us);
    last_due_us = std::max(last_due_us, record.due_us);
  }
  // The same seed gives the same arrivals.
  const LevelPlan again{.rate_per_s = 200, .requests = 40, .seed = 3};
  int64_t last_again_us = 0;
  const LevelRun second = generator.run(
      again, [&](RequestRecord&& record) { last_again_us = std::max(last_again_us, record.due_us); });
  EXPECT_EQ(last_due_us - run.began_us, last_again_us - second.began_us);
}

TEST(Generator, SomeUsersLeave) {
  const FakeServer server([](int) {
    return Script{{0, stream_head()}, {0, stream_sound(1.1)}, {50, stream_sound(0.5)}, {0, kStreamEnd}};
  });
  const std::vector<RequestRecord> records =
      ask(options_for(server.url()), {.users = 8, .requests = 40, .leave_share = 0.5});
  const auto left =
      std::count_if(records.begin(), records.end(), [](const auto& r) { return r.outcome == Outcome::left; });
  EXPECT_GT(left, 8);
  EXPECT_LT(left, 32);
  for (const RequestRecord& record : records) EXPECT_FALSE(record.failure);
}

TEST(Generator, ReadersTakeTheirTime) {
  const FakeServer server([](int) { return Script{{0, whole_answer(kSecond * 6 / 5)}}; });
  const auto latency_ms = [&](const LevelPlan& plan) {
    const std::vector<RequestRecord> records = ask(options_for(server.url()), plan);
    EXPECT_FALSE(records.at(0).failure);
    return figures_of(records.at(0)).latency_ms;
  };
  // Of 1.2 s of sound the last read takes at most 16 KiB, or 0.34 s; half a second is read ahead.
  EXPECT_GE(latency_ms({.requests = 1, .real_time = true}), 1'200 - 342 - 500);
  EXPECT_GE(latency_ms({.requests = 1, .slow_share = 1}), 2 * (1'200 - 342 - 500));
}

TEST(Reader, WaitsUntilItHasPlayed) {
  EXPECT_EQ(wait_of_reader_s(0, 100, 0), 0);
  EXPECT_EQ(wait_of_reader_s(1, 0.5, 0), 0);
  EXPECT_EQ(wait_of_reader_s(1, 3, 1), 1.5);
  EXPECT_EQ(wait_of_reader_s(0.5, 3, 1), 4);
  EXPECT_EQ(wait_of_reader_s(1, 3, 10), 0);
}

TEST(Generator, GivesUpAfterTheTimeout) {
  const FakeServer server(
      [](int) { return Script{{0, stream_head() + stream_sound(0.1)}, {60'000, kStreamEnd}}; });
  GeneratorOptions options = options_for(server.url());
  // On a busy machine even the beginning may not come in the first of these.
  std::string told;
  for (const double timeout_s : {0.2, 0.8, 3.2, 12.8}) {
    options.timeout_s = timeout_s;
    told = failure_at(options);
    if (!told.starts_with("timeout: no ")) break;
  }
  EXPECT_THAT(told, HasSubstr(concat("timeout: not whole after ", options.timeout_s, " s")));
}

TEST(Generator, AnInterruptedRunEndsAtOnce) {
  const FakeServer server([](int) { return Script{{0, stream_head()}, {60'000, kStreamEnd}}; });
  std::vector<RequestRecord> records;
  const LevelRun run = Generator(options_for(server.url()))
                           .run({.users = 3, .requests = 100},
                                [&](RequestRecord&& record) { records.push_back(std::move(record)); },
                                {.interrupted = [] { return true; }, .on_progress = {}});
  EXPECT_TRUE(run.interrupted);
  ASSERT_EQ(records.size(), 3u);
  for (const RequestRecord& record : records) EXPECT_EQ(record.outcome, Outcome::interrupted);
}

TEST(Generator, SaysWhatIsWrongWithAServer) {
  std::string gone;
  {
    const FakeServer server([](int) { return Script{}; });
    gone = server.url();
  }
  EXPECT_THAT(failure_at(options_for(gone)), HasSubstr("Connection refused"));
  const FakeServer html([](int) {
    return Script{
        {0, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>"}};
  });
  EXPECT_THAT(failure_at(options_for(html.url())), HasSubstr("not_sound: expected sound, got text/html"));
  const FakeServer broken([](int) {
    return Script{{0,
                   "HTTP/1.1 500 No\r\nContent-Type: application/json\r\nContent-Length: "
                   "15\r\n\r\n{\"error\":\"why\"}"}};
  });
  EXPECT_THAT(failure_at(options_for(broken.url())),
              HasSubstr("status_500: status 500: {\"error\":\"why\"}"));
  EXPECT_THROW(Generator(options_for("http://no-such-host.invalid")), Error);
}

// A server's key, and the certificate that it signed itself for 127.0.0.1 or for another host.
class Certified {
 public:
  explicit Certified(const char* names) : context_(SSL_CTX_new(TLS_server_method())) {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* x509 = X509_new();
    X509_set_version(x509, 2);
    X509_gmtime_adj(X509_getm_notBefore(x509), 0);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, key);
    X509_NAME* name = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test"), -1,
                               -1, 0);
    X509_set_issuer_name(x509, name);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names);
    X509_add_ext(x509, extension, -1);
    X509_EXTENSION_free(extension);
    X509_sign(x509, key, EVP_sha256());
    SSL_CTX_use_certificate(context_, x509);
    SSL_CTX_use_PrivateKey(context_, key);
    std::FILE* file = std::fopen(path().c_str(), "w");
    PEM_write_X509(file, x509);
    std::fclose(file);
    X509_free(x509);
    EVP_PKEY_free(key);
  }
  ~Certified() { SSL_CTX_free(context_); }
  Certified(const Certified&) = delete;
  Certified& operator=(const Certified&) = delete;
  SSL_CTX* context() const { return context_; }
  std::string path() const { return folder_.path("certificate.pem"); }

 private:
  TemporaryFolder folder_;
  SSL_CTX* context_;
};

TEST(Generator, SpeaksTlsOnlyWithWhomTheCertificateNames) {
  const auto script = [](int) { return Script{{0, whole_answer(2'400)}}; };
  const Certified own("IP:127.0.0.1"), other("DNS:example.com");
  const FakeServer server(script, own.context());
  GeneratorOptions options = options_for(server.url());
  EXPECT_THAT(failure_at(options), HasSubstr("certificate: the certificate of 127.0.0.1:"));
  options.authorities = own.path();
  for (const RequestRecord& record : ask(options, {.users = 2, .requests = 6}))
    EXPECT_FALSE(record.failure) << record.failure->detail;
  const FakeServer elsewhere(script, other.context());
  options = options_for(elsewhere.url());
  options.authorities = other.path();
  EXPECT_THAT(failure_at(options), HasSubstr("certificate: "));
  const FakeServer plain(script);
  options = options_for("https" + plain.url().substr(4));
  EXPECT_THAT(failure_at(options), testing::StartsWith("tls: "));
}

}  // namespace
}  // namespace shoal::load
