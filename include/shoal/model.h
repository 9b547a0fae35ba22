// What can be asked of a model before, and without, an engine that loads it. Every `model` is what
// EngineConfig::model is: a folder in an official layout, or empty for the built-in voice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "shoal/engine.h"
#include "shoal/engine_config.h"
#include "shoal/error.h"
#include "shoal/speech_request.h"
#include "shoal/statistics.h"

namespace shoal {

// What Engine::traits() would return, as far as config.json shows; family is empty if it does not show.
// Throws nothing.
ModelTraits traits_of(const std::string& model);

// The largest size in bytes of SpeechRequest::text and of its phonemes.
inline constexpr int64_t kMaxTextBytes = 256 << 10;

// Checks every field that can be checked without loading the model. Returns a warning for each field without
// effect, "field: has no effect: why". Throws Error naming the field: invalid_argument, too_large;
// unsupported for fields that only other models have and, in a strict request, for fields without effect.
std::vector<std::string> validate_request(const SpeechRequest& request, const std::string& model);

// The configuration of an engine for this one request: without queue, deadline and warm-up, and with no more
// memory than the request needs.
EngineConfig config_for_one(EngineConfig config, const SpeechRequest& request);

// The folder of the built-in voice: $SHOAL_VOICE_DIR, or where it was installed. Throws Error(not_found).
std::string built_in_voice_dir();

// "cpu" or "cuda:N": the device that EngineConfig::device selects on this machine. Throws Error:
// invalid_argument (no such name), unavailable (no such device), unsupported (a build without GPUs).
std::string resolve_device(const std::string& device);

// A line for people: "NAME: TEXT".
struct ReportLine {
  std::string name, text;
};

// A value for programs. The unit stands in the name (weight_bytes).
struct ReportValue {
  std::string name;
  std::variant<int64_t, std::vector<std::string>> value;
};

// A tensor as its file has it.
struct TensorReport {
  std::string name, dtype;  // dtype: "F32", "BF16", "F16", ...
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};

// A part of a network: all tensors that it reads.
struct PartReport {
  std::string name;
  int64_t parameters = 0;
  int64_t bytes = 0;  // in memory, in ModelReport::precision
};

// A checkpoint, compared with the tensors that its model needs.
struct CheckpointReport {
  std::string name, path;  // name: of what it holds, "codec"
  int64_t file_bytes = 0;
  std::vector<TensorReport> tensors;  // all of the file
  std::vector<PartReport> parts;
  int64_t unused_tensors = 0;
  std::vector<std::string> problems;  // tensors that are missing or have another shape
};

// The contents of a model folder.
struct ModelReport {
  std::string dir;
  std::string family;     // as ModelTraits::family
  std::string precision;  // the dtype of other weights in memory: "F32", "BF16", "F16"
  // "int8", "int4" or "fp8" if the folder keeps the layers' matrices so (quantise.h); else empty
  std::string weights;
  std::string codec_weights;  // "int8" if the folder keeps the codec's so; else empty
  std::vector<ReportLine> configuration;
  std::vector<CheckpointReport> checkpoints;
  std::vector<ReportLine> remarks;  // voices, memory
  std::vector<ReportValue> values;  // the same for programs
  std::optional<Error> problem;     // why the model cannot be used; absent: nothing is missing
};

// Reads the metadata of a model's files; computes nothing and loads no weights. Throws Error naming the file
// when it cannot be read: not_found, corrupt_file, invalid_argument; unsupported for random:kokoro (of
// random:s1-mini and random:s2-pro the sizes are reported). Files that can be read but are incomplete are
// reported in ModelReport::problem. automatic: what the device "auto" of this machine would take.
ModelReport inspect_model(const std::string& model, Precision precision = Precision::automatic);

// The device memory that an engine with a configuration will need, estimated before anything is allocated.
// Workspaces and CUDA graphs are approximate.
struct MemoryEstimate {
  std::string device;  // described for people
  FormatNames formats;
  std::string capacity;  // what the memory serves: "32 sequences ... a step, 64 streams"
  std::string remark;    // one or more sentences
  std::vector<MemoryPart> parts;
  std::vector<std::pair<std::string, int64_t>> figures;  // of the capacity, by name
  int64_t available_bytes = 0;                           // free on the device now

  int64_t total_bytes() const;
  bool fits() const { return total_bytes() <= available_bytes; }
  // Throws Error(resource_exhausted) with the parts and the free memory unless it fits.
  void check() const;
};

// Reads configurations and the headers of checkpoints, no weights. Throws the Errors of an engine that loads
// the model: not_found, corrupt_file, unsupported (precision), unavailable (device); resource_exhausted when
// kv_memory_mb alone exceeds the free memory.
MemoryEstimate estimate_memory(const EngineConfig& config);

}  // namespace shoal
