#include "ops/cpu/simd/vector_math.h"

#include <cmath>

namespace shoal::ops::cpu {

// The library's sine reduces any double exactly; rounding its square to f32 hides the last bits in which
// libraries may differ.
float sin_squared_of_large(float x) {
  const double s = std::sin(static_cast<double>(x));
  return static_cast<float>(s * s);
}

}  // namespace shoal::ops::cpu
