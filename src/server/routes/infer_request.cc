#include "server/routes/infer_request.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/base64.h"
#include "base/error.h"
#include "base/printable.h"
#include "server/body/infer_body.h"

namespace shoal::server {
namespace {

using Infer = InferSpeech;

constexpr const char* kJsonLength = "Inference-Header-Content-Length";
constexpr const char* kBinaryOutput = "binary_data_output";
constexpr const char* kNoSequences = "a speech is one request; there are no sequences";

[[noreturn]] void refuse_tensor(const std::string& name, std::string why) {
  throw BodyError(ErrorCode::invalid_argument, name, std::move(why));
}

std::vector<Field<Infer>> parameter_fields(const ServerConfig& config) {
  std::vector<Field<Infer>> fields;
  for (Field<OpenAiSpeech>& field : openai_speech_fields(
           config, {"voice", "speed", "seed", "temperature", "top_p", "top_k", "repetition_penalty",
                    "max_new_tokens", "chunk_length", "normalize", "lang_code", "volume_multiplier",
                    "sample_rate", "special_tokens", "strict_phonemes"})) {
    field.doc.forms.clear();  // a parameter is a text, a number or a truth
    fields.push_back({std::move(field.doc), std::move(field.read)});
  }
  fields.front() = text<Infer, std::optional<std::string>>(
      "voice", &Infer::voice, "a voice of /v1/audio/voices; default: the model's own");
  fields.push_back(choice<Infer, std::string>(
                       "response_format", &Infer::response_format, audio::format_names(),
                       "of audio_file; pcm is 16-bit little-endian mono; ulaw and alaw are G.711 at 8 kHz")
                       .otherwise("\"wav\""));
  fields.push_back(integer("timeout", &Infer::timeout_us, {0, 1e6 * config.max_timeout_s},
                           "microseconds that it may take; 0: as long as the server allows")
                       .otherwise("0"));
  fields.push_back(boolean(kBinaryOutput, &Infer::binary_data_output,
                           "tensors of the answer as bytes behind its JSON, of infer alone")
                       .otherwise("false"));
  fields.push_back(refused<Infer>("priority", "integer",
                                  "requests are served in the order in which they come", Value{int64_t{0}}));
  fields.push_back(refused<Infer>("sequence_id", "integer", kNoSequences, Value{int64_t{0}}));
  fields.push_back(refused<Infer>("sequence_start", "boolean", kNoSequences));
  fields.push_back(refused<Infer>("sequence_end", "boolean", kNoSequences));
  return fields;
}

void check_body_type(const Request& request) {
  const std::string type = request.content_type();
  if (type.empty() || type == "application/json" || type == "application/octet-stream") return;
  throw BodyError(ErrorCode::unsupported, "",
                  "Content-Type: expected application/json, application/octet-stream or none, got \"" +
                      printable(type) + '"');
}

// Bytes of a clip: as they are, or in base64 where JSON carries them.
std::string clip_of(const InferInput& input, size_t i) {
  if (input.binary) return input.elements[i];
  auto bytes = from_base64(input.elements[i]);
  if (!bytes) refuse_tensor(kReferenceAudio, "expected base64, where it is no binary tensor");
  return std::move(*bytes);
}

void take_texts(const InferInput& input) {
  for (const std::string& element : input.elements)
    if (!is_utf8(element)) refuse_tensor(input.name, "expected UTF-8");
}

void take_input(const InferInput& input, Infer& into) {
  const size_t count = input.elements.size();
  if (input.name == kTextInput) {
    take_texts(input);
    if (count != 1)
      refuse_tensor(kTextInput, concat("expected one text, found ", count,
                                       ": send a request for each, they are batched here"));
    into.input = input.elements.front();
    return;
  }
  const bool audio = input.name == kReferenceAudio;
  if (!audio && input.name != kReferenceText)
    refuse_tensor("inputs", concat("there is no input \"", printable(input.name),
                                   "\"; expected text_input, reference_audio or reference_text"));
  if (!audio) take_texts(input);
  into.references.resize(std::max(into.references.size(), count));
  for (size_t i = 0; i < count; ++i)
    (audio ? into.references[i].audio : into.references[i].text) =
        audio ? clip_of(input, i) : input.elements[i];
}

void take_inputs(const std::vector<InferInput>& inputs, int max_references, Infer& into) {
  std::set<std::string_view> seen;
  size_t clips = 0, words = 0;
  for (const InferInput& input : inputs) {
    if (!seen.insert(input.name).second) refuse_tensor(printable(input.name), "is given twice");
    if (input.name == kReferenceAudio) clips = input.elements.size();
    if (input.name == kReferenceText) words = input.elements.size();
    if (std::cmp_greater(std::max(clips, words), max_references))
      refuse_tensor(input.name, concat("expected at most ", max_references, " clips"));
    take_input(input, into);
  }
  if (!seen.contains(kTextInput)) refuse_tensor(kTextInput, "is required: a tensor with the text to speak");
  if (clips != words)
    refuse_tensor(kReferenceText, concat("expected the words of each clip, found ", words, " for ", clips));
}

void take_outputs(const std::vector<InferOutput>& outputs, Infer& into) {
  for (const InferOutput& output : outputs) {
    const auto name = std::ranges::find(kOutputNames, output.name);
    if (name == kOutputNames.end())
      refuse_tensor("outputs", concat("there is no output \"", printable(output.name),
                                      "\"; expected audio, audio_file or sample_rate"));
    into.outputs[static_cast<size_t>(name - kOutputNames.begin())] = {
        .wanted = true, .binary = output.binary.value_or(into.binary_data_output)};
  }
  if (!outputs.empty()) return;
  for (const auto kind : {kAudio, kSampleRate}) into.outputs[kind] = {true, into.binary_data_output};
}

void complete(Infer& speech) {
  if (!speech.voice) speech.voice = "";
  if (speech.timeout_us > 0) speech.timeout = 1e-6 * static_cast<double>(speech.timeout_us);
}

// What stands beside `parameters` and within them would have two values.
void check_once(const Value& body) {
  const Value* within = body.find("parameters");
  const auto* members = within ? within->as<Value::Object>() : nullptr;
  for (const auto& [name, value] : members ? *members : Value::Object())
    if (body.find(name)) refuse_tensor(name, "is given twice, in parameters and beside them");
}

}  // namespace

Schema<InferSpeech> infer_parameters(const ServerConfig& config) {
  return Schema<Infer>(parameter_fields(config));
}

Schema<InferSpeech> generate_schema(const ServerConfig& config) {
  std::vector<Field<Infer>> known = parameter_fields(config);
  std::erase_if(known, [](const Field<Infer>& field) { return field.doc.name == kBinaryOutput; });
  const Schema<Infer> parameters(known);
  FieldDoc doc{.name = "parameters", .type = "object", .help = "how to speak", .items = parameters.docs()};
  std::vector<Field<Infer>> fields = {
      text<Infer, std::string>(kTextInput, &Infer::input, "what to say").required(),
      text("id", &Infer::id, "which the answer repeats"),
      {std::move(doc), [parameters](const Value& value, const std::string& where, Infer& into) {
         into = parameters.read_onto(std::move(into), value, where);
       }}};
  std::ranges::move(known, std::back_inserter(fields));
  return Schema<Infer>(std::move(fields));
}

InferSpeech read_infer(const Request& request, const Schema<InferSpeech>& parameters, int max_references) {
  check_body_type(request);
  const std::string* length = request.headers.find(kJsonLength);
  const InferBody body =
      read_infer_body(request.body, length ? std::optional<std::string_view>(*length) : std::nullopt);
  Infer speech = parameters.read(body.parameters, "parameters");
  speech.id = body.id;
  take_inputs(body.inputs, max_references, speech);
  take_outputs(body.outputs, speech);
  complete(speech);
  return speech;
}

InferSpeech read_generate(const Request& request, const Schema<InferSpeech>& schema) {
  check_body_type(request);
  const Value body = read_json(request.body);
  check_once(body);
  Infer speech = schema.read(body);
  complete(speech);
  return speech;
}

}  // namespace shoal::server
