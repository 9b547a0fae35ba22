// shoal inspect for a Kokoro model folder.
#pragma once

#include <string>

namespace shoal::cli {

struct KokoroInspection {
  std::string dir, precision;
  bool tensors = false, json = false;
};
// Prints configuration, tensors, voices and memory. Throws Error as reading them does; corrupt_file when
// tensors are missing, misshapen or unknown.
void inspect_kokoro(const KokoroInspection& options);

}  // namespace shoal::cli
