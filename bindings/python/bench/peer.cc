// The C++ side of compare.py: the same work through the same library's C++ API.
//
//   python_peer first REQUESTS          for each request milliseconds to the first sound, and what of it is
//   not the
//                                       engine's: from the sound's being there to its being had
//   python_peer users USERS REQUESTS    seconds of sound per second, USERS threads with REQUESTS each
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "shoal/engine.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

shoal::SpeechRequest request(uint64_t seed) {
  shoal::SpeechRequest request;
  request.text = "The quick brown fox jumps.";
  request.voice = "clara";
  request.seed = seed;
  return request;
}

size_t read_all(shoal::Speech& speech) {
  size_t samples = 0;
  for (auto piece = speech.next(); !piece.empty(); piece = speech.next()) samples += piece.size();
  return samples;
}

void first(shoal::Engine& engine, int requests) {
  for (int i = 0; i < requests; ++i) {
    const auto start = Clock::now();
    shoal::Speech speech = engine.submit(request(static_cast<uint64_t>(i)));
    speech.next();
    const double first_s = seconds_since(start);
    read_all(speech);
    std::printf("%.4f %.4f\n", first_s * 1e3, (first_s - speech.summary().first_audio_s) * 1e3);
  }
}

void users(shoal::Engine& engine, int count, int requests) {
  std::vector<size_t> samples(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  const auto start = Clock::now();
  for (size_t user = 0; user < samples.size(); ++user) {
    threads.emplace_back([&, user] {
      for (int i = 0; i < requests; ++i) {
        shoal::Speech speech =
            engine.submit(request(user * static_cast<size_t>(requests) + static_cast<size_t>(i)));
        samples[user] += read_all(speech);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  size_t all = 0;
  for (const size_t some : samples) all += some;
  std::printf("%.4f\n", static_cast<double>(all) / engine.sample_rate_hz() / seconds_since(start));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  shoal::EngineConfig config;
  config.threads = 2;
  config.cache_dir = "none";
  config.request_timeout_s = 0;
  shoal::Engine engine(config);
  engine.start();
  if (what == "first") {
    first(engine, std::atoi(argv[2]));
  } else if (what == "users" && argc > 3) {
    users(engine, std::atoi(argv[2]), std::atoi(argv[3]));
  } else {
    std::fprintf(stderr, "usage: python_peer first REQUESTS | users USERS REQUESTS\n");
    return 2;
  }
}
