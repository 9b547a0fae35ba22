#include "runtime/engine/silent_speech.h"

#include <utility>

namespace shoal::runtime {

void append_silence(SpeechState& state) {
  state.update([](SpeechSummary& summary) { summary.warnings.emplace_back(kNothingToSay); });
  const auto samples = static_cast<size_t>(kSilenceS * state.sample_rate_hz());
  state.append(std::vector<float>(samples));
}

Speech speak_silence(Ledger& ledger, uint64_t client, const QueueEntry& entry,
                     std::shared_ptr<SpeechState> state) {
  ledger.enter(Stage::preparing, client, entry);
  try {
    append_silence(*state);
  } catch (...) {
    ledger.abandon(Stage::preparing, client);
    throw;
  }
  ledger.leave(*state, Stage::preparing, client, std::nullopt);
  return Speech(std::move(state));
}

}  // namespace shoal::runtime
