// How many of the threads that a configuration asks for are of use.
#pragma once

namespace shoal::runtime {

// `wanted` (0: one for each CPU), but no more than there are CPUs: threads of a team wait for one another, so
// that more of them only take turns. A warning in the log says that fewer are used. Results do not depend on
// it.
int useful_threads(int wanted, int available_cpus);

}  // namespace shoal::runtime
