// A batch that runs on a thread of its own, and its items on their way to the caller.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <vector>

#include "capi/buffer.h"
#include "capi/call.h"
#include "capi/engine.h"
#include "capi/handle.h"
#include "capi/mailbox.h"
#include "capi/request.h"
#include "capi/running_threads.h"
#include "capi/speech.h"
#include "capi/structs.h"

struct shoal_item : shoal::capi::Handle {
  static constexpr auto kKind = shoal::capi::Kind::item;
  shoal_item(size_t at, shoal::BatchResult ended) : Handle(kKind), index(at), result(std::move(ended)) {}
  const size_t index;
  shoal::BatchResult result;
};

namespace shoal::capi {

// Items that have ended, in that order, until the batch ends.
class EndedItems {
 public:
  // notify: called after every item and at the end; it throws nothing. May be empty.
  explicit EndedItems(std::function<void()> notify) : notify_(std::move(notify)) {}
  void add(std::unique_ptr<shoal_item> item);
  // error: why the batch itself failed; null after success.
  void end(std::exception_ptr error);

  enum class Outcome { item, none_yet, end };
  // Throws what the batch failed with, after the items that came before.
  Outcome take(std::unique_ptr<shoal_item>& item, std::chrono::milliseconds patience);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<shoal_item>> items_;
  bool ended_ = false;
  std::exception_ptr error_;
  const std::function<void()> notify_;
};

}  // namespace shoal::capi

struct shoal_batch : shoal::capi::Handle {
  static constexpr auto kKind = shoal::capi::Kind::batch;
  shoal_batch() : Handle(kKind) {}
  std::shared_ptr<shoal::capi::EndedItems> items;
  std::stop_source stop;
};

namespace shoal::capi {
namespace {

std::vector<SpeechRequest> requests_of(const shoal_request* const* requests, size_t count) {
  if (!requests && count > 0) fail(ErrorCode::invalid_argument, "requests: expected an array, got NULL");
  std::vector<SpeechRequest> copies;
  for (size_t i = 0; i < count; ++i) copies.push_back(held(requests[i], "requests").value);
  return copies;
}

BatchOptions options_of(const shoal_batch_options& given) {
  BatchOptions options;
  if (given.has_seed != 0) options.seed = given.seed;
  options.max_item_s = given.max_item_s;
  options.max_in_flight = given.max_in_flight;
  return options;
}

std::function<void()> notify_of(const shoal_batch_options& given) {
  if (!given.mailbox) return {};
  return Mailbox::poster(held(given.mailbox, "mailbox").shared, given.token);
}

// Speaks on this thread.
void speak_all(SharedEngine& engine, std::vector<SpeechRequest> requests, BatchOptions options,
               EndedItems& items) noexcept {
  try {
    options.on_item = [&items](size_t index, BatchResult& result) {
      items.add(std::make_unique<shoal_item>(index, std::move(result)));
    };
    engine.engine().generate_batch(std::move(requests), std::move(options));
    items.end(nullptr);
  } catch (...) {
    items.end(std::current_exception());
  }
}

}  // namespace

void EndedItems::add(std::unique_ptr<shoal_item> item) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
  }
  changed_.notify_one();
  if (notify_) notify_();
}

void EndedItems::end(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    error_ = std::move(error);
  }
  changed_.notify_all();
  if (notify_) notify_();
}

EndedItems::Outcome EndedItems::take(std::unique_ptr<shoal_item>& item, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return !items_.empty() || ended_; });
  if (!items_.empty()) {
    item = std::move(items_.front());
    items_.pop_front();
    return Outcome::item;
  }
  if (!ended_) return Outcome::none_yet;
  if (error_) std::rethrow_exception(error_);
  return Outcome::end;
}

}  // namespace shoal::capi

using namespace shoal::capi;

shoal_code shoal_engine_batch(shoal_engine* engine, const shoal_request* const* requests, size_t count,
                              const shoal_batch_options* options, shoal_batch** batch, shoal_error* error) {
  return call(error, [&] {
    shoal_batch*& out = output(batch, "batch");
    const std::shared_ptr<SharedEngine> shared = held(engine, "engine").shared;
    shared->engine().sample_rate_hz();  // it runs
    const auto given = options ? read_struct(options, "options") : shoal_batch_options{};
    auto all = requests_of(requests, count);
    auto made = std::make_unique<shoal_batch>();
    made->items = std::make_shared<EndedItems>(notify_of(given));
    shoal::BatchOptions wanted = options_of(given);
    wanted.cancel = made->stop.get_token();
    start_thread([shared, all = std::move(all), wanted = std::move(wanted), items = made->items]() mutable {
      speak_all(*shared, std::move(all), std::move(wanted), *items);
    });
    out = made.release();
  });
}

void shoal_batch_free(shoal_batch* batch) {
  if (!batch || in_child_of_running()) return;
  batch->stop.request_stop();
  delete batch;
}

shoal_code shoal_batch_cancel(shoal_batch* batch, shoal_error* error) {
  return call(error, [&] { held(batch, "batch").stop.request_stop(); });
}

shoal_code shoal_batch_next(shoal_batch* batch, int64_t timeout_ms, shoal_item** item, shoal_error* error) {
  return call(error, [&]() -> shoal_code {
    shoal_item*& out = output(item, "item");
    std::unique_ptr<shoal_item> taken;
    switch (held(batch, "batch").items->take(taken, patience_of(timeout_ms))) {
      case EndedItems::Outcome::none_yet:
        return SHOAL_NOT_YET;
      case EndedItems::Outcome::end:
        return SHOAL_END;
      case EndedItems::Outcome::item:
        break;
    }
    out = taken.release();
    return SHOAL_OK;
  });
}

void shoal_item_free(shoal_item* item) { delete item; }

size_t shoal_item_index(const shoal_item* item) { return item ? item->index : 0; }

shoal_code shoal_item_status(const shoal_item* item, shoal_error* error) {
  return call(error, [&] {
    if (const auto& ended = held(item, "item").result.error) throw shoal::Error(*ended);
  });
}

shoal_code shoal_item_samples(shoal_item* item, shoal_buffer** samples, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(samples, "samples");
    out = buffer_of(std::exchange(held(item, "item").result.samples, {}));
  });
}

shoal_code shoal_item_summary(const shoal_item* item, shoal_summary* summary, shoal_error* error) {
  return call(error,
              [&] { write_struct(summary, summary_of(held(item, "item").result.summary), "summary"); });
}

shoal_code shoal_item_warnings(const shoal_item* item, shoal_buffer** json, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(json, "json");
    out = json_buffer(texts_value(held(item, "item").result.summary.warnings));
  });
}
