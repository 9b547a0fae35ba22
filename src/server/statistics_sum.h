// GET /v1/stats of several servers as that of one.
#pragma once

#include <vector>

#include "server/body/value.h"

namespace shoal::server {

// Counts, bytes and seconds of sound are added; a distribution's mean is that of all, and its quantiles are
// the largest of any; times are the longest, shares and sizes the mean, those of caches by their counts.
// Words, names and sizes of pages stay if all say the same, else they are null; true is what any says. Models
// are told apart by their names. Members that only some have are those of these.
Value sum_statistics(const std::vector<Value>& servers);

}  // namespace shoal::server
