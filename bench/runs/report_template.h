// The page of a report as it was built from web/src/report: one file that draws the run it holds.
#pragma once

#include <string_view>

namespace shoal::runs {

// HTML with the word REPORT_DATA once, where the JSON of the runs goes. Empty in a program that was built
// without it (SHOAL_WEB_PAGE).
std::string_view report_template();

}  // namespace shoal::runs
