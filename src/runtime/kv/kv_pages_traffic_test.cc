// Random traffic over a pretended memory: what every column of every page holds is known, so a page that is
// shared, copied or reused wrongly shows as a wrong column.
#include <algorithm>
#include <gtest/gtest.h>
#include <list>
#include <random>

#include "base/error.h"
#include "runtime/kv/kv_pages.h"

namespace shoal::runtime {
namespace {

constexpr int64_t kWidth = 2;

// What attention would read at a column depends on all columns up to it.
uint64_t value_of(uint64_t before, std::span<const int32_t> column) {
  for (const int32_t id : column) before = (before ^ static_cast<uint32_t>(id)) * 0x100000001b3u + 1;
  return before | 1;
}

struct Prompt {
  uint64_t voice = 0;
  std::vector<int32_t> ids;      // [columns, kWidth]
  std::vector<uint64_t> values;  // [columns]

  int64_t columns() const { return static_cast<int64_t>(values.size()); }
  void add(int32_t id, int32_t code) {
    ids.insert(ids.end(), {id, code});
    values.push_back(value_of(values.empty() ? 0 : values.back(), std::span(ids).last(kWidth)));
  }
};

struct Live {
  Prompt prompt;
  SequencePages pages;
  std::vector<uint64_t> values;  // of every column written
};

struct Traffic {
  unsigned seed;
  int64_t pages, page_size, max_voices;
  bool roomy;  // no eviction and no drop, so the oracle is exact
  int64_t steps;
};

void PrintTo(const Traffic& t, std::ostream* out) {
  *out << "seed " << t.seed << ", " << t.pages << " pages of " << t.page_size;
}

class World {
 public:
  explicit World(const Traffic& traffic)
      : traffic_(traffic),
        random_(traffic.seed),
        pool_({.pages = traffic.pages,
               .page_size = traffic.page_size,
               .column_width = kWidth,
               .max_voices = traffic.max_voices}),
        memory_(static_cast<size_t>(traffic.pages * traffic.page_size)) {}

  void step() {
    const int64_t action = between(0, 99);
    if (live_.empty() || (action < 15 && live_.size() < 9)) {
      start();
    } else if (action < 85) {
      advance(pick());
    } else if (action < 97) {
      finish(pick());
    } else if (action < 99) {
      Live& moved = *pick();
      SequencePages away = std::move(moved.pages);
      moved.pages = std::move(away);
    } else if (!traffic_.roomy) {
      pool_.drop_cached();
      ASSERT_EQ(pool_.statistics().pages_cached, 0);
    }
    pool_.check_invariants();
    for (const Live& sequence : live_) check_values(sequence);
  }

  void end() {
    while (!live_.empty()) finish(live_.begin());
    pool_.check_invariants();
    const KvStatistics now = pool_.statistics();
    EXPECT_EQ(now.pages_used, 0);
    EXPECT_EQ(now.hit_columns, hit_columns_);
    EXPECT_EQ(now.hit_columns + now.missed_columns, looked_up_columns_);
    EXPECT_GT(now.hit_columns, 0);
    EXPECT_EQ(now.tail_copies > 0, traffic_.page_size > 1);
    EXPECT_LE(now.voices_cached, traffic_.max_voices);
    EXPECT_EQ(now.evictions > 0, !traffic_.roomy);
    pool_.drop_cached();
    EXPECT_EQ(pool_.statistics().pages_free, traffic_.pages);
  }

 private:
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  std::list<Live>::iterator pick() {
    return std::next(live_.begin(), between(0, static_cast<int64_t>(live_.size()) - 1));
  }
  uint64_t& at(const SequencePages& pages, int64_t column) {
    const auto page = pages.table()[static_cast<size_t>(column / traffic_.page_size)];
    return memory_[static_cast<size_t>(page * traffic_.page_size + column % traffic_.page_size)];
  }

  // A prompt that begins like an older one, or a new one; few ids, so that likeness comes by chance too.
  Prompt make_prompt() {
    Prompt prompt;
    prompt.voice = static_cast<uint64_t>(between(0, 4));
    if (!seen_.empty() && between(0, 9) > 0) {
      const Prompt& older = seen_[static_cast<size_t>(between(0, static_cast<int64_t>(seen_.size()) - 1))];
      const int64_t kept = between(0, older.columns());
      for (int64_t i = 0; i < kept * kWidth; i += kWidth)
        prompt.add(older.ids[static_cast<size_t>(i)], older.ids[static_cast<size_t>(i + 1)]);
      if (between(0, 3) > 0) prompt.voice = older.voice;
    }
    const int64_t longest = 4 * traffic_.page_size;
    const int64_t more =
        between(prompt.columns() == 0 ? 1 : 0, std::max<int64_t>(1, longest - prompt.columns()));
    for (int64_t i = 0; i < more; ++i)
      prompt.add(static_cast<int32_t>(between(0, 1)), static_cast<int32_t>(between(0, 1)));
    seen_.push_back(prompt);
    return prompt;
  }

  // The longest beginning that any published prompt ever shared, by comparing them all.
  int64_t longest_published_prefix(const Prompt& prompt) const {
    int64_t longest = 0;
    for (const std::vector<uint64_t>& values : published_) {
      const auto difference = std::ranges::mismatch(values, prompt.values).in1;
      longest = std::max<int64_t>(longest, difference - values.begin());
    }
    return std::min(longest, prompt.columns() - 1);
  }

  void start() {
    Live sequence{make_prompt(), {}, {}};
    sequence.pages = SequencePages(pool_, sequence.prompt.voice, sequence.prompt.ids);
    if (const auto copy = sequence.pages.tail_copy()) {
      ASSERT_NE(copy->from, copy->to);
      std::copy_n(memory_.begin() + copy->from * traffic_.page_size, traffic_.page_size,
                  memory_.begin() + copy->to * traffic_.page_size);
    }
    const int64_t cached = sequence.pages.cached_columns(), most = longest_published_prefix(sequence.prompt);
    if (traffic_.roomy)
      ASSERT_EQ(cached, most);
    else
      ASSERT_LE(cached, most);
    hit_columns_ += cached;
    looked_up_columns_ += sequence.prompt.columns();
    sequence.values.assign(sequence.prompt.values.begin(), sequence.prompt.values.begin() + cached);
    live_.push_back(std::move(sequence));
  }

  // Some columns of the prompt, or after it; not every step is published at once.
  void advance(std::list<Live>::iterator sequence) {
    const auto done = static_cast<int64_t>(sequence->values.size());
    const int64_t prompt_left = sequence->prompt.columns() - done;
    const int64_t count = prompt_left > 0 ? between(1, prompt_left) : 1;
    const int64_t held = static_cast<int64_t>(sequence->pages.table().size());
    const int64_t wanted = (done + count + traffic_.page_size - 1) / traffic_.page_size;
    const bool expected = wanted - held <= pool_.available();
    ASSERT_EQ(sequence->pages.hold(done + count), expected);
    if (!expected) return finish(sequence);  // preempted
    for (int64_t column = done; column < done + count; ++column) {
      sequence->values.push_back(prompt_left > 0 ? sequence->prompt.values[static_cast<size_t>(column)]
                                                 : random_() & ~uint64_t{1});
      at(sequence->pages, column) = sequence->values.back();
    }
    if (prompt_left <= 0 || between(0, 3) == 0) return;
    sequence->pages.publish(sequence->prompt.ids, done + count);
    published_.emplace_back(sequence->values);
  }

  void finish(std::list<Live>::iterator sequence) { live_.erase(sequence); }

  void check_values(const Live& sequence) {
    for (size_t column = 0; column < sequence.values.size(); ++column)
      ASSERT_EQ(at(sequence.pages, static_cast<int64_t>(column)), sequence.values[column])
          << "column " << column << " of " << sequence.values.size() << ", prompt of "
          << sequence.prompt.columns();
  }

  Traffic traffic_;
  std::mt19937_64 random_;
  KvPages pool_;
  std::vector<uint64_t> memory_;  // [pages, page_size]
  std::list<Live> live_;
  std::vector<Prompt> seen_;
  std::vector<std::vector<uint64_t>> published_;
  int64_t hit_columns_ = 0, looked_up_columns_ = 0;
};

class KvPagesTraffic : public ::testing::TestWithParam<Traffic> {};

TEST_P(KvPagesTraffic, NoColumnIsEverWrongAndNoPageIsLost) {
  World world(GetParam());
  for (int64_t step = 0; step < GetParam().steps; ++step) {
    ASSERT_NO_FATAL_FAILURE(world.step()) << "step " << step << ", " << ::testing::PrintToString(GetParam());
  }
  world.end();
}

std::vector<Traffic> traffics() {
  std::vector<Traffic> all;
  for (unsigned seed = 1; seed <= 8; ++seed)
    all.push_back({seed, 4 + 4 * (seed % 8), 1 + seed % 5, 1 + seed % 4, false, 10'000});
  for (unsigned seed = 21; seed <= 26; ++seed) all.push_back({seed, 8000, 1 + seed % 6, 100, true, 1000});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Seeds, KvPagesTraffic, ::testing::ValuesIn(traffics()),
                         [](const auto& suite) { return concat("seed_", suite.param.seed); });

}  // namespace
}  // namespace shoal::runtime
