#include "runtime/kv/voice_uses.h"

#include <algorithm>

namespace shoal::runtime {

std::vector<VoiceUses::Use>::iterator VoiceUses::find(uint64_t voice) {
  return std::ranges::find(uses_, voice, &Use::voice);
}

void VoiceUses::add_page(uint64_t voice) {
  if (voice == 0) return;
  if (const auto use = find(voice); use != uses_.end())
    ++use->pages;
  else
    uses_.insert(uses_.begin(), {voice, 1});
}

void VoiceUses::remove_page(uint64_t voice) {
  if (voice == 0) return;
  if (const auto use = find(voice); --use->pages == 0) uses_.erase(use);
}

void VoiceUses::touch(uint64_t voice) {
  if (const auto use = find(voice); use != uses_.end()) std::rotate(uses_.begin(), use, use + 1);
}

int64_t VoiceUses::pages_of(uint64_t voice) const {
  const auto use = std::ranges::find(uses_, voice, &Use::voice);
  return use == uses_.end() ? 0 : use->pages;
}

}  // namespace shoal::runtime
