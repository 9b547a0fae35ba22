#include "runtime/families/language/random_model.h"

namespace shoal::runtime {

std::optional<dual_ar::Config> random_sizes(std::string_view model) {
  if (model == "random:s1-mini") return dual_ar::Config::s1_mini();
  if (model == "random:s2-pro") return dual_ar::Config::s2_pro();
  return std::nullopt;
}

}  // namespace shoal::runtime
