#include "runtime/kv/kv_pages.h"

#include "runtime/kv/kv_pages_state.h"

namespace shoal::runtime {

KvPages::KvPages(const Options& options) : state_(std::make_unique<State>(options)) {}

KvPages::~KvPages() = default;

const KvPages::Options& KvPages::options() const { return state_->pool.options(); }

int64_t KvPages::available() const { return state_->pool.available(); }

void KvPages::drop_cached() { state_->pool.drop_cached(); }

KvStatistics KvPages::statistics() const { return state_->pool.statistics(); }

void KvPages::check_invariants() const {
  std::vector<int64_t> holders(static_cast<size_t>(options().pages));
  for (const SequencePages* sequence : state_->sequences)
    for (const PageId page : sequence->table()) ++holders.at(static_cast<size_t>(page));
  state_->pool.check_invariants(holders);
}

}  // namespace shoal::runtime
