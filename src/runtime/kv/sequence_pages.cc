#include <algorithm>
#include <utility>

#include "base/error.h"
#include "runtime/kv/kv_pages.h"
#include "runtime/kv/kv_pages_state.h"

namespace shoal::runtime {
namespace {

int64_t pages_for(int64_t columns, int64_t page_size) {
  return columns / page_size + (columns % page_size != 0);
}

int64_t columns_of(std::span<const int32_t> prompt, const KvPages::Options& options) {
  const auto ids = static_cast<int64_t>(prompt.size());
  CHECK(ids % options.column_width == 0, "prompt of ", ids, " ids in columns of ", options.column_width);
  return ids / options.column_width;
}

// Columns [begin, end) of a prompt.
std::span<const int32_t> columns_between(std::span<const int32_t> prompt, int64_t begin, int64_t end,
                                         const KvPages::Options& options) {
  return prompt.subspan(static_cast<size_t>(begin * options.column_width),
                        static_cast<size_t>((end - begin) * options.column_width));
}

}  // namespace

SequencePages::SequencePages(KvPages& pages, uint64_t voice, std::span<const int32_t> prompt)
    : pool_(pages.state_.get()), voice_(voice) {
  const int64_t columns = columns_of(prompt, pages.options());
  reserve_table(columns);
  pool_->sequences.push_back(this);  // the last that can fail
  if (pages.options().cache && columns > 0) find_prefix(prompt, columns);
}

void SequencePages::find_prefix(std::span<const int32_t> prompt, int64_t columns) {
  PagePool& pool = pool_->pool;
  const KvPages::Options& options = pool.options();
  const int64_t most = columns - 1;
  PageId last = kNoPage;
  for (int64_t end = options.page_size; end <= most; end += options.page_size) {
    last = pool.index().find(last, columns_between(prompt, end - options.page_size, end, options));
    if (last == kNoPage) break;
    pool.hold(last);
    table_.push_back(last);
    cached_columns_ = end;
  }
  published_columns_ = cached_columns_;
  take_tail(
      columns_between(prompt, cached_columns_, std::min(most, cached_columns_ + options.page_size), options));
  pool.touch_voice(voice_);
  KvStatistics& counters = pool.counters();
  ++counters.lookups;
  counters.hits += cached_columns_ > 0;
  counters.hit_columns += cached_columns_;
  counters.missed_columns += columns - cached_columns_;
  counters.tail_copies += tail_copy_.has_value();
}

void SequencePages::take_tail(std::span<const int32_t> ids) {
  PagePool& pool = pool_->pool;
  const auto [source, columns] = pool.index().longest_match(table_.empty() ? kNoPage : table_.back(), ids);
  if (columns == 0) return;
  const PageId page = pool.take_beside(source);
  if (page == kNoPage) return;
  table_.push_back(page);
  cached_columns_ += columns;
  tail_copy_ = PageCopy{source, page};
}

SequencePages::SequencePages(SequencePages&& other) noexcept { *this = std::move(other); }

SequencePages& SequencePages::operator=(SequencePages&& other) noexcept {
  if (this == &other) return *this;
  release();
  pool_ = std::exchange(other.pool_, nullptr);
  table_ = std::exchange(other.table_, {});
  voice_ = std::exchange(other.voice_, 0);
  cached_columns_ = std::exchange(other.cached_columns_, 0);
  published_columns_ = std::exchange(other.published_columns_, 0);
  tail_copy_ = std::exchange(other.tail_copy_, std::nullopt);
  if (pool_ != nullptr) std::ranges::replace(pool_->sequences, &other, this);
  return *this;
}

SequencePages::~SequencePages() { release(); }

int64_t SequencePages::cached_columns() const { return cached_columns_; }

std::optional<PageCopy> SequencePages::tail_copy() const { return tail_copy_; }

std::span<const PageId> SequencePages::table() const { return table_; }

int64_t SequencePages::shared_pages() const {
  // A holder of a page also holds those before it.
  const auto own = std::find_if(table_.begin(), table_.end(),
                                [this](PageId page) { return !pool_->pool.is_shared(page); });
  return own - table_.begin();
}

bool SequencePages::hold(int64_t columns) {
  CHECK(pool_ != nullptr && columns >= 0, "hold: ", columns, " columns, ", pool_ ? "a" : "no", " pool");
  PagePool& pool = pool_->pool;
  const int64_t wanted = pages_for(columns, pool.options().page_size);
  const int64_t missing = wanted - static_cast<int64_t>(table_.size());
  if (missing <= 0) return true;
  if (missing > pool.available()) return false;
  reserve_table(columns);
  for (int64_t i = 0; i < missing; ++i) table_.push_back(pool.take());
  return true;
}

void SequencePages::reserve_table(int64_t columns) {
  CHECK(pool_ != nullptr && columns >= 0, "reserve_table: ", columns, " columns, ", pool_ ? "a" : "no",
        " pool");
  const KvPages::Options& options = pool_->pool.options();
  table_.reserve(static_cast<size_t>(std::min(options.pages, pages_for(columns, options.page_size))));
}

void SequencePages::publish(std::span<const int32_t> prompt, int64_t written) {
  CHECK(pool_ != nullptr, "publish: no pool");
  PagePool& pool = pool_->pool;
  const KvPages::Options& options = pool.options();
  if (!options.cache || written <= published_columns_) return;
  const int64_t size = options.page_size;
  CHECK(written <= columns_of(prompt, options) && written <= static_cast<int64_t>(table_.size()) * size,
        "publish: ", written, " columns of ", columns_of(prompt, options), " in ", table_.size(),
        " pages of ", size);
  for (int64_t begin = published_columns_ / size * size; begin < written; begin += size) {
    const auto i = static_cast<size_t>(begin / size);
    const auto ids = columns_between(prompt, begin, std::min(written, begin + size), options);
    table_[i] = pool.publish(table_[i], i == 0 ? kNoPage : table_[i - 1], ids, voice_);
  }
  published_columns_ = written;
  pool.limit_voices();
}

void SequencePages::release() {
  KvPages::State* const state = std::exchange(pool_, nullptr);
  if (state == nullptr) return;
  for (; !table_.empty(); table_.pop_back()) state->pool.give_back(table_.back());
  state->pool.touch_voice(voice_);
  state->pool.limit_voices();
  std::erase(state->sequences, this);
  voice_ = 0;
  cached_columns_ = published_columns_ = 0;
  tail_copy_.reset();
}

}  // namespace shoal::runtime
