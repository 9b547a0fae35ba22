// POST /v1/tts/batch: many texts, one answer.
#include <chrono>
#include <cmath>
#include <exception>

#include "server/routes/batch_answer.h"
#include "server/routes/batch_run.h"
#include "server/routes/gone_signal.h"
#include "server/routes/packed_answer.h"
#include "server/routes/services.h"
#include "server/routes/spoken_answer.h"

namespace shoal::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kLines = "application/x-ndjson";

// The first piece of an answer, or one more.
Task<> send(Exchange& exchange, const char* content_type, std::string piece) {
  if (exchange.begun()) {
    co_await exchange.write(piece);
    co_return;
  }
  // A balancer that gathers bytes would hold results back.
  Response head{.content_type = content_type,
                .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
  head.body = std::move(piece);
  co_await exchange.begin(std::move(head));
}

// Results as they come, a line for each.
Task<> send_lines(Exchange& exchange, BatchRun& run, std::stop_token gone) {
  while (auto answer = co_await run.next()) {
    check_not_gone(gone);
    answer->json += '\n';
    co_await send(exchange, kLines, std::move(answer->json));
  }
}

// One object. Each result is sent as soon as all before it have been, so that the sound of a large batch is
// not kept.
Task<> send_object(Exchange& exchange, BatchRun& run, std::stop_token gone, const char* list) {
  const Clock::time_point start = Clock::now();
  std::string before = concat("{\"", list, "\":[");
  bool success = true;
  while (auto answer = co_await run.next()) {
    check_not_gone(gone);
    success = success && answer->success;
    co_await send(exchange, "application/json", std::exchange(before, ","));
    co_await send(exchange, "application/json", std::move(answer->json));
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const std::string end = write_json(
      {Value::Object{{"success", {success}}, {"total_time", {std::round(seconds * 1000) / 1000}}}});
  co_await exchange.write("]," + end.substr(1));
}

}  // namespace

Task<> answer_batch(Services& services, Exchange& exchange, BatchForm form) {
  const Speaking speaking(services.metrics);
  const GoneSignal gone(exchange);
  const Request& request = exchange.request();
  const bool lines = accepts(request, kLines);
  const auto read = [&services, &request, form] {
    return read_batch(services, request, form.body_of(request), form.items);
  };
  BatchRequest batch = co_await services.workers.run(exchange.executor(), read);
  batch.in_order = !lines;
  BatchRun run(exchange.executor(), services, request, std::move(batch), gone.token());
  std::exception_ptr thrown;
  try {
    if (lines)
      co_await send_lines(exchange, run, gone.token());
    else
      co_await send_object(exchange, run, gone.token(), form.results);
    co_await exchange.end();
  } catch (...) {
    thrown = std::current_exception();
  }
  if (!thrown) co_return;
  run.cancel();  // and wait for it here, where it blocks nobody else
  while (const auto left = co_await run.next()) {
  }
  std::rethrow_exception(thrown);
}

std::vector<Route> batch_routes(const ServerConfig& config) {
  return {
      {.method = "POST",
       .path = "/v1/tts/batch",
       .errors = ErrorStyle::fish,
       .body = BodySize::large,
       .doc = {.summary = "Speak many texts; one that fails does not fail the others.",
               .body = batch_docs(config, BatchForm().items),
               .body_types = packed_types(),
               .answer_types = {"application/json", kLines}},
       .handle = [](Services& services, Exchange& exchange) { return answer_batch(services, exchange, {}); },
       .takes_slot = true}};
}

}  // namespace shoal::server
