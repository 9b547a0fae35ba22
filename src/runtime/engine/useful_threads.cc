#include "runtime/engine/useful_threads.h"

#include "base/log.h"

namespace shoal::runtime {

int useful_threads(int wanted, int available_cpus) {
  if (wanted == 0) return available_cpus;
  if (wanted <= available_cpus) return wanted;
  log(LogLevel::warning, "threads: ", wanted, " are asked for, but this process may use ", available_cpus,
      available_cpus == 1 ? " CPU" : " CPUs", ": so many run");
  return available_cpus;
}

}  // namespace shoal::runtime
