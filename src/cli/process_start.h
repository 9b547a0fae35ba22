// What the program sets up before anything else.
#pragma once

namespace shoal::cli {

// - Descriptors 0 to 2 that are closed are held by /dev/null, so that no file or socket gets their number and
// is
//   written to as standard error. Using them fails as it did.
// - A reader that leaves (SIGPIPE) and a file over the limit of its size (SIGXFSZ) are errors of write(), not
//   signals that kill.
void prepare_process();

}  // namespace shoal::cli
