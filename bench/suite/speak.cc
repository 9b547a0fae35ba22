#include "bench/suite/speak.h"

#include <algorithm>
#include <malloc.h>
#include <optional>

#include "base/error.h"
#include "bench/machine.h"
#include "bench/measure/sentences.h"
#include "bench/speech/compute_session.h"
#include "bench/timing.h"
#include "shoal/engine.h"

namespace shoal::suite {
namespace {

// Memory that one configuration takes: of the GPU what became used, on a CPU what the process holds.
class MemoryMeter {
 public:
  explicit MemoryMeter(const EngineConfig& config) : device_(config.device) {
    malloc_trim(0);  // what the configuration before gave back is nobody's memory
    free_before_ = bench::free_device_memory(device_);
  }

  void rest() {
    memory_.of_device = free_before_.has_value();
    memory_.rest_bytes = used();
    bench::reset_peak_resident();
  }
  void look() {
    const int64_t now = memory_.of_device ? used() : bench::peak_resident_bytes();
    memory_.peak_bytes = std::max(memory_.peak_bytes, now);
  }
  const Memory& memory() const { return memory_; }

 private:
  int64_t used() const {
    return free_before_ ? *free_before_ - bench::free_device_memory(device_).value_or(0)
                        : bench::resident_bytes();
  }

  const std::string device_;
  std::optional<int64_t> free_before_;
  Memory memory_;
};

class Suite {
 public:
  Suite(const Configuration& configuration, const SuitePlan& plan, const SuiteWatch& watch)
      : title_(configuration.title),
        plan_(plan),
        watch_(watch),
        meter_(configuration.config),
        engine_(configuration.config) {}

  ConfigurationFigures run() {
    load();
    for (int i = 0; i < plan_.warm_up; ++i) speak(Phase::warm_up, plan_.texts.front(), i);
    for (const NamedText& text : plan_.texts)
      for (int i = 0; i < plan_.samples; ++i) speak(Phase::sample, text, i);
    const double batch_began_s = bench::now_s();
    for (int i = 0; i < plan_.batch; ++i)
      speak(Phase::batch, plan_.texts[static_cast<size_t>(i) % plan_.texts.size()], i);
    if (plan_.batch > 0) figures_.batch_s = bench::now_s() - batch_began_s;
    figures_.memory = meter_.memory();
    return figures_;
  }

 private:
  void load() {
    watch_.on_progress(0, title_ + ": loading");
    const double began_s = bench::now_s();
    engine_.start();
    figures_.load_s = bench::now_s() - began_s;
    const Health health = engine_.health();
    figures_.title = title_;
    figures_.model = health.model;
    figures_.precision = in_words(health.formats);
    figures_.device = health.device;
    figures_.has_tokens = !engine_.traits().phonemes;
    meter_.rest();
  }

  // Phases have seeds of their own: no request repeats another.
  void speak(Phase phase, const NamedText& text, int number) {
    if (watch_.interrupted()) fail(ErrorCode::cancelled, "interrupted");
    const auto all = static_cast<double>(plan_.warm_up + plan_.batch) +
                     static_cast<double>(plan_.texts.size()) * plan_.samples;
    watch_.on_progress(done_++ / all, concat(title_, ": ", text.name));
    SpeechRequest request;
    request.text = text.text;
    request.seed = plan_.seed + 1'000'000 * static_cast<uint64_t>(phase) + static_cast<uint64_t>(number);
    Spoken spoken{.phase = phase,
                  .text = text.name,
                  .characters = std::ssize(text.text),
                  .due_s = bench::now_s() - plan_.began_s};
    Speech speech = engine_.submit(request);
    speech.read_all();
    spoken.summary = speech.summary();
    meter_.look();
    figures_.add(spoken);
    watch_.on_spoken(spoken);
  }

  const std::string& title_;
  const SuitePlan& plan_;
  const SuiteWatch& watch_;
  MemoryMeter meter_;
  Engine engine_;
  ConfigurationFigures figures_;
  double done_ = 0;
};

std::string sentences_of(size_t least, size_t from) {
  std::string text;
  for (size_t i = from; text.size() < least; ++i) {
    if (!text.empty()) text += ' ';
    text += bench::sentences()[i % bench::sentences().size()];
  }
  return text;
}

}  // namespace

std::vector<NamedText> usual_texts() {
  return {{"short", sentences_of(25, 0)}, {"medium", sentences_of(120, 1)}, {"long", sentences_of(300, 4)}};
}

ConfigurationFigures speak(const Configuration& configuration, const SuitePlan& plan,
                           const SuiteWatch& watch) {
  return Suite(configuration, plan, watch).run();
}

}  // namespace shoal::suite
