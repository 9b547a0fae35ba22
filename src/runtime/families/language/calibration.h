// Sentences that a language model speaks so that its weights can be quantised by what they are multiplied
// with (docs/QUANTISATION.md).
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/dual_ar/calibration.h"
#include "ops/calibrated_weights.h"
#include "ops/context.h"
#include "weights/checkpoint.h"
#include "weights/model_dir.h"

namespace shoal::runtime {

// The lines of a text file that are not blank, 1 to 256. Throws Error naming file and line: as read_file;
// invalid_argument (not UTF-8, no sentence, a control character); too_large (file, line, number of lines).
std::vector<std::string> read_calibration_sentences(const std::string& path);

class Calibration {
 public:
  // The model of these files speaks the sentences, in float32 and from one seed, so that the same is measured
  // everywhere. tell: told of the share that is spoken. Team and checkpoint must outlive it. Throws Error as
  // loading does.
  Calibration(const weights::ModelFiles& files, const weights::Checkpoint& checkpoint,
              const std::vector<std::string>& sentences, ThreadTeam& team,
              const std::function<void(double share)>& tell);

  // Of a matrix of the layers by its name in the checkpoint; layers in their order, slow ones first. Valid
  // until it is called for another layer.
  const ops::InputStatistics& inputs_of(const std::string& matrix);
  ops::Context& context() { return ctx_; }

 private:
  void run_to(int64_t layer);

  Workspace workspace_;
  ops::Context ctx_;
  std::optional<dual_ar::DualAr> model_;
  std::optional<dual_ar::LayerReplay> replay_;
  std::array<ops::InputStatistics, dual_ar::BlockObserver::kProducts> inputs_;
};

}  // namespace shoal::runtime
