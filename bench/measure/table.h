// Figures as text.
#pragma once

#include <string>
#include <vector>

namespace shoal::bench {

// 1.5 with 2 decimals: "1.50".
std::string decimal(double value, int decimals);

// Rows of cells as lines: the first row is the heading, columns are as wide as their widest cell, the first
// is flush left and the others flush right.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace shoal::bench
