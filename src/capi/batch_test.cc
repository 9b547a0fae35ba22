#include <gmock/gmock.h>
#include <map>
#include <set>
#include <thread>

#include "capi/capi_testing.h"

namespace shoal::capi {
namespace {

using namespace testing;
using ::testing::HasSubstr;

CBatch started_batch(const CEngine& engine, const std::vector<Request>& requests,
                     const shoal_batch_options* options = nullptr) {
  std::vector<const shoal_request*> handles;
  for (const Request& request : requests) handles.push_back(request.get());
  return made<CBatch>(shoal_engine_batch, engine.get(), handles.data(), handles.size(), options);
}

// Item by index; the batch has ended afterwards.
std::map<size_t, Item> all_items(const CBatch& batch) {
  std::map<size_t, Item> items;
  shoal_item* item = nullptr;
  shoal_code code = SHOAL_OK;
  while ((code = shoal_batch_next(batch.get(), -1, &item, nullptr)) == SHOAL_OK)
    items.emplace(shoal_item_index(item), item);
  EXPECT_EQ(code, SHOAL_END);
  return items;
}

std::vector<float> samples_of_item(const Item& item) {
  return values_of<float>(made<Buffer>(shoal_item_samples, item.get()));
}

TEST(CBatch, GivesEveryItemOnceWithTheSamplesOfARequestAlone) {
  const CEngine engine = started_engine();
  std::vector<Request> requests;
  for (const char* seed : {"1", "2", "3"}) requests.push_back(short_request(seed));
  const std::map<size_t, Item> items = all_items(started_batch(engine, requests));
  ASSERT_EQ(items.size(), 3U);
  for (const auto& [index, item] : items) {
    EXPECT_EQ(shoal_item_status(item.get(), nullptr), SHOAL_OK);
    shoal_summary summary = SHOAL_SUMMARY_INIT;
    EXPECT_EQ(shoal_item_summary(item.get(), &summary, nullptr), SHOAL_OK);
    EXPECT_EQ(summary.seed, index + 1);
    EXPECT_EQ(text_of(made<Buffer>(shoal_item_warnings, item.get())), "[]");
    const std::vector<float> samples = samples_of_item(item);
    EXPECT_EQ(samples, all_samples(submitted(engine, requests[index])));
    EXPECT_TRUE(samples_of_item(item).empty()) << "they are given once";
  }
}

TEST(CBatch, ABadItemsErrorIsItsOwn) {
  const CEngine engine = started_engine();
  std::vector<Request> requests;
  for (int i = 0; i < 3; ++i) requests.push_back(short_request());
  shoal_request_set(requests[1].get(), "temperature", "9", nullptr);
  const std::map<size_t, Item> items = all_items(started_batch(engine, requests));
  shoal_error error = SHOAL_ERROR_INIT;
  EXPECT_EQ(shoal_item_status(items.at(1).get(), &error), SHOAL_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("temperature"));
  EXPECT_TRUE(samples_of_item(items.at(1)).empty());
  EXPECT_EQ(samples_of_item(items.at(0)), samples_of_item(items.at(2)));
}

TEST(CBatch, TakesItsOptions) {
  const CEngine engine = started_engine();
  std::vector<Request> requests;
  for (int i = 0; i < 2; ++i) {
    requests.push_back(short_request());
    shoal_request_set(requests.back().get(), "seed", nullptr, nullptr);
  }
  shoal_batch_options options = SHOAL_BATCH_OPTIONS_INIT;
  options.seed = 5;
  options.has_seed = 1;
  options.max_in_flight = 1;
  const auto first = all_items(started_batch(engine, requests, &options));
  const auto second = all_items(started_batch(engine, requests, &options));
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(samples_of_item(first.at(i)), samples_of_item(second.at(i)));
  options.max_item_s = 0.001;
  const auto limited = all_items(started_batch(engine, requests, &options));
  EXPECT_EQ(shoal_item_status(limited.at(0).get(), nullptr), SHOAL_TOO_LARGE);
}

TEST(CBatch, CancelEndsEveryItemThatHasNotEnded) {
  const CEngine engine = started_engine();
  std::vector<Request> requests;
  for (int i = 0; i < 4; ++i) requests.push_back(endless_request());
  const CBatch batch = started_batch(engine, requests);
  shoal_item* none = nullptr;
  EXPECT_EQ(shoal_batch_next(batch.get(), 0, &none, nullptr), SHOAL_NOT_YET);
  EXPECT_EQ(shoal_batch_cancel(batch.get(), nullptr), SHOAL_OK);
  const auto items = all_items(batch);
  ASSERT_EQ(items.size(), 4U);
  for (const auto& [index, item] : items)
    EXPECT_EQ(shoal_item_status(item.get(), nullptr), SHOAL_CANCELLED) << index;
}

TEST(CBatch, AMailboxIsToldOfItemsAndOfTheEnd) {
  const CEngine engine = started_engine();
  const Mail mailbox = made<Mail>(shoal_mailbox_new);
  shoal_batch_options options = SHOAL_BATCH_OPTIONS_INIT;
  options.mailbox = mailbox.get();
  options.token = 77;
  std::vector<Request> requests;
  for (int i = 0; i < 3; ++i) requests.push_back(short_request());
  const CBatch batch = started_batch(engine, requests, &options);
  size_t given = 0;
  for (bool over = false; !over;) {
    uint64_t token = 0;
    size_t count = 0;
    ASSERT_EQ(shoal_mailbox_take(mailbox.get(), 60'000, &token, 1, &count, nullptr), SHOAL_OK);
    EXPECT_EQ(token, 77U);
    shoal_item* item = nullptr;
    shoal_code code = SHOAL_OK;
    while ((code = shoal_batch_next(batch.get(), 0, &item, nullptr)) == SHOAL_OK)
      ++given, shoal_item_free(item);
    over = code == SHOAL_END;
  }
  EXPECT_EQ(given, 3U);
}

TEST(CBatch, MayBeFreedWhileItSpeaksAndOutliveItsEngine) {
  CEngine engine = started_engine();
  std::vector<Request> requests;
  requests.push_back(endless_request());
  started_batch(engine, requests).reset();
  const CBatch orphan = started_batch(engine, requests);
  engine.reset();
  const auto items = all_items(orphan);
  EXPECT_NE(shoal_item_status(items.at(0).get(), nullptr), SHOAL_OK);
}

TEST(CBatch, RefusesWhatIsNoBatch) {
  const CEngine engine = started_engine();
  shoal_batch* batch = nullptr;
  EXPECT_EQ(shoal_engine_batch(engine.get(), nullptr, 2, nullptr, &batch, nullptr), SHOAL_INVALID_ARGUMENT);
  const shoal_request* with_null[] = {nullptr};
  EXPECT_EQ(shoal_engine_batch(engine.get(), with_null, 1, nullptr, &batch, nullptr), SHOAL_INVALID_ARGUMENT);
  EXPECT_TRUE(all_items(started_batch(engine, {})).empty());
  shoal_engine_stop(engine.get(), 0, nullptr);
  EXPECT_EQ(shoal_engine_batch(engine.get(), nullptr, 0, nullptr, &batch, nullptr), SHOAL_UNAVAILABLE);
}

}  // namespace
}  // namespace shoal::capi
