// The share of one whole answer in the memory for all of them.
#pragma once

#include <cstdint>
#include <utility>

#include "server/http/body_budget.h"

namespace shoal::server {

// Its destructor gives back what it holds. The budget must outlive it.
class AnswerMemory {
 public:
  explicit AnswerMemory(BodyBudget& budget) : budget_(&budget) {}
  AnswerMemory(AnswerMemory&& other) noexcept
      : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
  AnswerMemory& operator=(AnswerMemory&&) = delete;
  ~AnswerMemory() { budget_->give_back(bytes_); }

  // Changes the held bytes to this amount, or by this amount. Throws Error(resource_exhausted) and then
  // changes nothing.
  void resize(int64_t bytes);
  void take(int64_t bytes) { resize(bytes_ + bytes); }
  void let_go(int64_t bytes) { resize(bytes_ - bytes); }

 private:
  BodyBudget* budget_;
  int64_t bytes_ = 0;
};

}  // namespace shoal::server
