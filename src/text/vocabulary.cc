#include "text/vocabulary.h"

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace shoal::text {

size_t Vocabulary::slot_of(std::string_view bytes) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = std::hash<std::string_view>{}(bytes)&mask;
  while (slots_[slot] >= 0 && bytes_of(entries_[static_cast<size_t>(slots_[slot])]) != bytes)
    slot = (slot + 1) & mask;
  return slot;
}

void Vocabulary::grow() {
  slots_.assign(std::max<size_t>(1024, slots_.size() * 2), -1);
  for (size_t i = 0; i < entries_.size(); ++i)
    slots_[slot_of(bytes_of(entries_[i]))] = static_cast<int32_t>(i);
}

bool Vocabulary::add(std::string_view bytes, int32_t id) {
  CHECK(id >= 0 && id < kMaxTokens, "id ", id);
  if ((entries_.size() + 1) * 2 > slots_.size()) grow();
  const size_t slot = slot_of(bytes);
  if (slots_[slot] >= 0 || contains(id)) return false;
  const auto index = static_cast<int32_t>(entries_.size());
  slots_[slot] = index;
  entries_.push_back({arena_.size(), bytes.size(), id});
  arena_ += bytes;
  if (static_cast<size_t>(id) >= entry_of_id_.size()) entry_of_id_.resize(static_cast<size_t>(id) + 1, -1);
  entry_of_id_[static_cast<size_t>(id)] = index;
  longest_ = std::max(longest_, bytes.size());
  return true;
}

int32_t Vocabulary::find(std::string_view bytes) const {
  if (entries_.empty() || bytes.size() > longest_) return -1;
  const int32_t index = slots_[slot_of(bytes)];
  return index < 0 ? -1 : entries_[static_cast<size_t>(index)].id;
}

std::string_view Vocabulary::bytes_of(int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= entry_of_id_.size()) return {};
  const int32_t index = entry_of_id_[static_cast<size_t>(id)];
  return index < 0 ? std::string_view() : bytes_of(entries_[static_cast<size_t>(index)]);
}

}  // namespace shoal::text
