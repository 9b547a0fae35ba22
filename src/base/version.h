// Which build this is.
#pragma once

#include <string>

namespace shoal {

// "0.1.0": project(VERSION) of CMakeLists.txt, the one place that has it.
std::string version();

// Of the sources (cmake/commit.cmake): ten hexadecimal digits, followed by "-changed" if they differed from
// it; "unknown": they were no git checkout.
std::string commit();

}  // namespace shoal
