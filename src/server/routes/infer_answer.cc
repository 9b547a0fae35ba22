#include "server/routes/infer_answer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>

#include "audio/stream_resampler.h"
#include "base/base64.h"
#include "base/error.h"
#include "server/body/infer_body.h"
#include "server/routes/sound_encoder.h"
#include "server/routes/speech_warnings.h"

namespace shoal::server {
namespace {

constexpr size_t kMostFloatText = 16;  // "-1.17549435e-38," and its like

struct TensorDoc {
  const char* name;
  const char* datatype;
  const char* triton_type;
  int64_t size;  // of its one dimension; -1: any
  bool optional;
};

constexpr std::array<TensorDoc, 3> kInputDocs = {{{kTextInput, "BYTES", "TYPE_STRING", 1, false},
                                                  {kReferenceAudio, "BYTES", "TYPE_STRING", -1, true},
                                                  {kReferenceText, "BYTES", "TYPE_STRING", -1, true}}};
constexpr std::array<TensorDoc, kInferOutputs> kOutputDocs = {
    {{kOutputNames[kAudio], "FP32", "TYPE_FP32", -1, false},
     {kOutputNames[kAudioFile], "BYTES", "TYPE_STRING", 1, false},
     {kOutputNames[kSampleRate], "INT32", "TYPE_INT32", 1, false}}};

Value words(const char* text) { return {std::string(text)}; }

// One for all tensors: where there is a file, that of its format.
int rate_of(const InferSpeech& asked, const SpeechSummary& summary) {
  return asked.outputs[kAudioFile].wanted ? infer_rate_hz(asked, summary.sample_rate_hz)
         : asked.sample_rate > 0          ? asked.sample_rate
                                          : summary.sample_rate_hz;
}

std::vector<float> at_rate(const InferSound& sound, int rate_hz) {
  if (rate_hz == sound.summary.sample_rate_hz) return sound.samples;
  audio::StreamResampler resampler(sound.summary.sample_rate_hz, rate_hz);
  std::vector<float> samples;
  resampler.push(sound.samples, samples);
  resampler.finish(samples);
  return samples;
}

std::string file_of(const InferSpeech& asked, const InferSound& sound, int rate_hz) {
  const audio::EncoderOptions options{.sample_rate_hz = rate_hz, .rewritable_header = true};
  SoundEncoder encoder(infer_options(asked).format, options, sound.summary.sample_rate_hz);
  std::string file = encoder.encode(sound.samples);
  file += encoder.finish();
  encoder.complete_header(file);
  return file;
}

void append_little_endian(std::string& out, uint32_t word) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(word >> shift & 0xff);
}

// A tensor of the answer: its JSON goes to `json`, or its bytes to `bytes`.
class TensorWriter {
 public:
  TensorWriter(std::string& json, std::string& bytes) : json_(json), bytes_(bytes) {}

  void audio(const std::vector<float>& samples, bool binary) {
    if (binary) {
      const size_t before = bytes_.size();
      for (const float sample : samples) append_little_endian(bytes_, std::bit_cast<uint32_t>(sample));
      return tensor(kAudio, samples.size(), bytes_.size() - before);
    }
    std::string data = "[";
    for (const float sample : samples) append_text(data, sample);
    if (data.ends_with(',')) data.pop_back();
    tensor(kAudio, samples.size(), {}, data + "]");
  }

  void file(const std::string& file, bool binary) {
    if (binary) {
      const size_t before = bytes_.size();
      append_bytes_element(bytes_, file);
      return tensor(kAudioFile, 1, bytes_.size() - before);
    }
    tensor(kAudioFile, 1, {}, "[\"" + to_base64(file) + "\"]", R"({"content_type":"base64"})");
  }

  void rate(int rate_hz, bool binary) {
    if (binary) append_little_endian(bytes_, static_cast<uint32_t>(rate_hz));
    tensor(kSampleRate, 1, binary ? std::optional<size_t>(4) : std::nullopt, concat("[", rate_hz, "]"));
  }

 private:
  static void append_text(std::string& text, float value) {
    std::array<char, kMostFloatText> digits{};
    text.append(digits.data(), std::to_chars(digits.begin(), digits.end(), value).ptr);
    text += ',';
  }

  void tensor(InferOutputKind kind, size_t size, std::optional<size_t> binary_size,
              const std::string& data = "", const char* parameters = "") {
    json_ += concat(json_.ends_with('[') ? "" : ",", R"({"name":")", kOutputNames[kind], R"(","datatype":")",
                    kOutputDocs[kind].datatype, R"(","shape":[)", size, "]");
    if (binary_size)
      json_ += concat(R"(,"parameters":{"binary_data_size":)", *binary_size, "}");
    else if (*parameters)
      json_ += concat(R"(,"parameters":)", parameters);
    if (!binary_size) json_ += R"(,"data":)" + data;
    json_ += '}';
  }

  std::string& json_;
  std::string& bytes_;
};

Value answer_parameters(const SpeechSummary& summary) {
  Value::Object parameters{{"seed", words(std::to_string(summary.seed).c_str())}};
  if (!summary.warnings.empty())
    parameters.emplace_back("warnings", words(warnings_header(summary.warnings).c_str()));
  return {std::move(parameters)};
}

Value tensors_metadata(const auto& docs) {
  Value::Array all;
  for (const TensorDoc& doc : docs)
    all.push_back({Value::Object{{"name", words(doc.name)},
                                 {"datatype", words(doc.datatype)},
                                 {"shape", {Value::Array{{doc.size}}}}}});
  return {std::move(all)};
}

Value tensors_configuration(const auto& docs) {
  Value::Array all;
  for (const TensorDoc& doc : docs) {
    Value::Object tensor{{"name", words(doc.name)},
                         {"data_type", words(doc.triton_type)},
                         {"dims", {Value::Array{{doc.size}}}}};
    if (doc.optional) tensor.emplace_back("optional", Value{true});
    all.push_back({std::move(tensor)});
  }
  return {std::move(all)};
}

}  // namespace

AnswerOptions infer_options(const InferSpeech& asked) {
  AnswerOptions options = answer_options(asked);
  options.sample_rate_hz = asked.sample_rate;  // pcm has that of the model, too: sample_rate tells it
  return options;
}

int infer_rate_hz(const InferSpeech& asked, int model_rate_hz) {
  return asked.sample_rate > 0 ? asked.sample_rate
                               : audio::usual_rate_hz(infer_options(asked).format, model_rate_hz);
}

size_t most_infer_bytes(const InferSpeech& asked, size_t samples) {
  const auto& [wanted, binary] = asked.outputs[kAudio];
  const size_t audio = !wanted ? 0 : binary ? sizeof(float) : kMostFloatText;
  // As many more for what is encoded; a higher rate has more samples.
  return (audio + (asked.outputs[kAudioFile].wanted ? 4 : 0)) * samples * (asked.sample_rate > 0 ? 4 : 1);
}

InferAnswer infer_answer(const InferSpeech& asked, const InferSound& sound) {
  Value::Object head = infer_head(asked.id, sound.model);
  head.emplace_back("parameters", answer_parameters(sound.summary));
  std::string json = write_json({std::move(head)}), bytes;
  json.pop_back();
  json += R"(,"outputs":[)";
  const int rate_hz = rate_of(asked, sound.summary);
  TensorWriter writer(json, bytes);
  const auto& outputs = asked.outputs;
  if (outputs[kAudio].wanted) writer.audio(at_rate(sound, rate_hz), outputs[kAudio].binary);
  if (outputs[kAudioFile].wanted) writer.file(file_of(asked, sound, rate_hz), outputs[kAudioFile].binary);
  if (outputs[kSampleRate].wanted) writer.rate(rate_hz, outputs[kSampleRate].binary);
  json += "]}";
  const bool any_binary = std::ranges::any_of(outputs, &InferSpeech::Output::binary);
  InferAnswer answer{.body = std::move(json)};
  answer.json_bytes = any_binary ? answer.body.size() : 0;
  answer.body += bytes;
  return answer;
}

Value::Object infer_head(const std::string& id, const std::string& model) {
  Value::Object head{{"model_name", {model}}, {"model_version", words("1")}};
  if (!id.empty()) head.emplace(head.begin(), "id", Value{id});
  return head;
}

Value model_metadata(const std::string& model) {
  return {Value::Object{{"name", {model}},
                        {"versions", {Value::Array{words("1")}}},
                        {"platform", words("shoal")},
                        {"inputs", tensors_metadata(kInputDocs)},
                        {"outputs", tensors_metadata(kOutputDocs)}}};
}

Value model_configuration(const std::string& model) {
  return {Value::Object{{"name", {model}},
                        {"platform", words("")},
                        {"backend", words("shoal")},
                        {"max_batch_size", {int64_t{0}}},
                        {"input", tensors_configuration(kInputDocs)},
                        {"output", tensors_configuration(kOutputDocs)},
                        {"model_transaction_policy", {Value::Object{{"decoupled", {false}}}}}}};
}

}  // namespace shoal::server
