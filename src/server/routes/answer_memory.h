// What an answer that is sent whole holds of the memory for all of them.
#pragma once

#include <cstdint>
#include <utility>

#include "server/http/body_budget.h"

namespace shoal::server {

// Gives back what it holds when it goes. The budget outlives it.
class AnswerMemory {
 public:
  explicit AnswerMemory(BodyBudget& budget) : budget_(&budget) {}
  AnswerMemory(AnswerMemory&& other) noexcept
      : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
  AnswerMemory& operator=(AnswerMemory&&) = delete;
  ~AnswerMemory() { budget_->give_back(bytes_); }

  // Holds so many bytes from now on, or so many more. Throws Error(resource_exhausted), and holds what it
  // did.
  void resize(int64_t bytes);
  void take(int64_t bytes) { resize(bytes_ + bytes); }
  void let_go(int64_t bytes) { resize(bytes_ - bytes); }

 private:
  BodyBudget* budget_;
  int64_t bytes_ = 0;
};

}  // namespace shoal::server
