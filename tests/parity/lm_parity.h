// Does our DualAR compute what the official code computed? Checks a fixture folder of the form that
// tests/data/fish has; sizes, cases and seeds are read from it. Failures are GoogleTest failures of the
// running test, with the fixture, the case and the value in their trace.
#pragma once

#include <string>

namespace shoal::parity {

// A folder with a checkpoint in S1's layout and lm_goldens.{json,safetensors}, or in S2's layout and
// s2_goldens.*. Token ids are those of the folder's tokenizer. Required, and a failure where missing: a case;
// for each case the prompt, tf_codes, the logits and the greedy streams; in S1's form also every other golden
// of a case but the bf16 runs. Checked where present, else counted as absent: the rest of S2's form, the bf16
// runs, the long prompt.

// f32: embeddings, every layer, slow and fast logits within 2e-6 relative, and of the long prompt's last
// column the logits and what the fast transformer is given.
void check_lm_values(const std::string& dir);
// f32: greedy streams of tokens and codes, equal.
void check_lm_streams(const std::string& dir);
// bf16: no farther from the f32 goldens than 1.5 times the official bf16 run, where there is one, else within
// kBf16Bound.
void check_lm_bf16(const std::string& dir);

}  // namespace shoal::parity
