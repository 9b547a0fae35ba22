#include "bench/runs/report_template.h"

namespace shoal::runs {

std::string_view report_template() { return {}; }

}  // namespace shoal::runs
