// How many indexed pages each voice has, and which voice has not been used for longest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shoal::runtime {

// Ordered by use. The requested voice has nearly always just been used, so a search from the front is short.
// Only the constructor allocates. Voice 0 means no voice and is not counted.
class VoiceUses {
 public:
  // Every voice has a page, so there are never more voices than pages.
  explicit VoiceUses(int64_t pages) { uses_.reserve(static_cast<size_t>(pages)); }

  // A voice's first page makes it the most recently used.
  void add_page(uint64_t voice);
  // The last one forgets the voice.
  void remove_page(uint64_t voice);
  // The most recently used from now on, if it has pages.
  void touch(uint64_t voice);

  int64_t count() const { return static_cast<int64_t>(uses_.size()); }
  int64_t pages_of(uint64_t voice) const;
  // 0: the most recently used.
  uint64_t by_use(int64_t rank) const { return uses_[static_cast<size_t>(rank)].voice; }

 private:
  struct Use {
    uint64_t voice = 0;
    int64_t pages = 0;
  };
  std::vector<Use>::iterator find(uint64_t voice);

  std::vector<Use> uses_;
};

}  // namespace shoal::runtime
