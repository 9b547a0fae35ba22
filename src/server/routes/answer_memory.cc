#include "server/routes/answer_memory.h"

#include "base/error.h"

namespace shoal::server {

void AnswerMemory::resize(int64_t bytes) {
  if (bytes <= bytes_)
    budget_->give_back(bytes_ - bytes);
  else if (!budget_->take(bytes - bytes_))
    fail(ErrorCode::resource_exhausted,
         "the memory for answers that are sent whole (max_body_memory_mb) is in use; ask for a stream, or "
         "try again later");
  bytes_ = bytes;
}

}  // namespace shoal::server
