// The ordinary tokens of a tokenizer: bytes <-> id.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::text {

// Bound on the ids of a tokenizer file, so that a hostile one cannot ask for tables of any size. The largest
// vocabularies in use have a quarter of a million tokens.
inline constexpr int64_t kMaxTokens = int64_t{1} << 22;

// One arena for all token bytes and an open-addressing table over it: a vocabulary of 150,000 tokens loads in
// milliseconds and a look-up allocates nothing.
class Vocabulary {
 public:
  // 0 <= id < kMaxTokens. Returns false and adds nothing when these bytes or this id exist already.
  bool add(std::string_view bytes, int32_t id);

  // Id of the token, or -1.
  int32_t find(std::string_view bytes) const;
  // Bytes of the token, or nullptr data when there is no such id. Valid until the next add().
  std::string_view bytes_of(int32_t id) const;
  bool contains(int32_t id) const { return bytes_of(id).data() != nullptr; }

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  int32_t highest_id() const { return static_cast<int32_t>(entry_of_id_.size()) - 1; }  // -1 when empty
  size_t longest_token() const { return longest_; }                                     // bytes

 private:
  struct Entry {
    size_t offset;
    size_t length;
    int32_t id;
  };
  std::string_view bytes_of(const Entry& entry) const { return {arena_.data() + entry.offset, entry.length}; }
  size_t slot_of(std::string_view bytes) const;  // its slot, or the empty slot for it
  void grow();

  std::string arena_;
  std::vector<Entry> entries_;
  std::vector<int32_t> slots_;        // power of two; entry index or -1; at most half full
  std::vector<int32_t> entry_of_id_;  // -1 for ids without a token
  size_t longest_ = 0;
};

}  // namespace shoal::text
