#include "server/body/infer_body.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "base/printable.h"

namespace shoal::server {
namespace {

constexpr size_t kLengthBytes = 4;
constexpr int64_t kMostTensors = 16, kMostDimensions = 8, kMostElements = 1 << 16;
constexpr const char* kNoSharedMemory = "tensors travel in the request: there is no shared memory";

struct TensorOptions {
  std::optional<int64_t> binary_data_size;
  std::optional<bool> binary_data;
};

struct TensorJson : TensorOptions {
  std::string name, datatype;
  std::vector<int64_t> shape;
  const Value* data = nullptr;
};

struct OutputJson : TensorOptions {
  std::string name;
};

struct BodyJson {
  std::string id;
  const Value* parameters = nullptr;
  std::vector<TensorJson> inputs;
  std::vector<OutputJson> outputs;
};

Field<TensorJson> shape_field() {
  FieldDoc doc{.name = "shape", .type = "array", .help = "how many elements, e.g. [1]", .required = true};
  doc.item = {{.name = "", .type = "integer", .help = "a dimension"}};
  return {std::move(doc), [](const Value& value, const std::string& where, TensorJson& into) {
            const Value::Array& array = read_array(value, where, kMostDimensions);
            for (size_t i = 0; i < array.size(); ++i)
              into.shape.push_back(
                  read_integer(array[i], item_path(where, i), {0, static_cast<double>(kMostElements)}));
          }};
}

Field<TensorJson> data_field() {
  FieldDoc doc{
      .name = "data", .type = "array", .help = "the elements, where they are not bytes behind the JSON"};
  doc.item = {{.name = "", .type = "string", .help = "a text, or bytes in base64"}};
  return {std::move(doc), [](const Value& value, const std::string& where, TensorJson& into) {
            read_array(value, where, -1);
            into.data = &value;
          }};
}

// The object `parameters` of a tensor.
template <typename T>
Field<T> options_field(const Schema<TensorOptions>& options) {
  FieldDoc doc{.name = "parameters", .type = "object", .help = "of this tensor", .items = options.docs()};
  return {std::move(doc), [options](const Value& value, const std::string& where, T& into) {
            static_cast<TensorOptions&>(into) = options.read(value, where);
          }};
}

Schema<TensorJson> input_schema() {
  const Schema<TensorOptions> options = {
      integer("binary_data_size", &TensorOptions::binary_data_size,
              {0, static_cast<double>(std::numeric_limits<int32_t>::max())},
              "bytes of the tensor behind the JSON, where its elements are there"),
      refused<TensorOptions>("shared_memory_region", "string", kNoSharedMemory)};
  return {text("name", &TensorJson::name, "of the tensor").required(), shape_field(),
          text("datatype", &TensorJson::datatype, "BYTES").required(), options_field<TensorJson>(options),
          data_field()};
}

Schema<OutputJson> output_schema() {
  const Schema<TensorOptions> options = {
      boolean("binary_data", &TensorOptions::binary_data, "as bytes behind the JSON of the answer"),
      refused<TensorOptions>("classification", "integer", "there are no classes", Value{int64_t{0}}),
      refused<TensorOptions>("shared_memory_region", "string", kNoSharedMemory)};
  return {text("name", &OutputJson::name, "of the tensor").required(), options_field<OutputJson>(options)};
}

Schema<BodyJson> infer_schema(std::vector<FieldDoc> parameter_docs) {
  FieldDoc parameters{.name = "parameters", .type = "object", .help = "how to speak"};
  parameters.items = std::move(parameter_docs);
  const auto keep = [](const Value& value, const std::string& where, BodyJson& into) {
    read_object(value, where);
    into.parameters = &value;
  };
  return {
      list("inputs", &BodyJson::inputs, input_schema(), kMostTensors, "tensors of the request").required(),
      text("id", &BodyJson::id, "which the answer repeats"), Field<BodyJson>{std::move(parameters), keep},
      list("outputs", &BodyJson::outputs, output_schema(), kMostTensors,
           "tensors that are wanted; default: those of the metadata")};
}

int64_t elements_of(const TensorJson& tensor, const std::string& where) {
  int64_t count = 1;
  for (const int64_t size : tensor.shape) {
    count *= size;
    if (count > kMostElements)
      throw BodyError(ErrorCode::invalid_argument, member_path(where, "shape"),
                      concat("expected at most ", kMostElements, " elements"));
  }
  return count;
}

// Arrays within arrays mean the same as one.
void flatten(const Value& value, const std::string& where, std::vector<std::string>& into) {
  if (const auto* array = value.as<Value::Array>()) {
    for (size_t i = 0; i < array->size(); ++i) flatten((*array)[i], item_path(where, i), into);
    return;
  }
  into.push_back(read_text(value, where));
}

// Takes an element from the front of `bytes`.
std::string_view take_element(std::string_view& bytes, const std::string& where) {
  uint32_t length = 0;
  if (bytes.size() >= kLengthBytes)
    for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  if (bytes.size() < kLengthBytes || length > bytes.size() - kLengthBytes)
    throw BodyError(ErrorCode::invalid_argument, where,
                    concat("expected an element's length and its bytes, found ", bytes.size(), " bytes"));
  const std::string_view element = bytes.substr(kLengthBytes, length);
  bytes.remove_prefix(kLengthBytes + length);
  return element;
}

std::vector<std::string> binary_elements(const TensorJson& tensor, int64_t count, const std::string& where,
                                         std::string_view& rest) {
  const auto size = static_cast<size_t>(*tensor.binary_data_size);
  if (size > rest.size())
    throw BodyError(ErrorCode::invalid_argument, where,
                    concat("expected ", size, " bytes behind the JSON, found ", rest.size(),
                           " (Inference-Header-Content-Length says where it ends)"));
  const std::string_view bytes = rest.substr(0, size);
  rest.remove_prefix(size);
  return read_bytes_elements(bytes, count, where);
}

InferInput read_input(const TensorJson& tensor, const std::string& where, std::string_view& rest) {
  if (tensor.datatype != "BYTES")
    throw BodyError(ErrorCode::invalid_argument, member_path(where, "datatype"),
                    concat("expected BYTES, found \"", printable(tensor.datatype), "\""));
  const bool binary = tensor.binary_data_size.has_value();
  const std::string size_path = member_path(where, "parameters.binary_data_size");
  if (binary && tensor.data)
    throw BodyError(ErrorCode::invalid_argument, size_path, "expected no data beside it");
  InferInput input{.name = tensor.name, .shape = tensor.shape, .elements = {}, .binary = binary};
  const int64_t count = elements_of(tensor, where);
  if (binary) {
    input.elements = binary_elements(tensor, count, size_path, rest);
    return input;
  }
  const std::string data_path = member_path(where, "data");
  if (!tensor.data) fail_missing(where, "data");
  flatten(*tensor.data, data_path, input.elements);
  if (std::cmp_not_equal(input.elements.size(), count))
    throw BodyError(ErrorCode::invalid_argument, data_path,
                    concat("expected ", count, " elements as the shape says, found ", input.elements.size()));
  return input;
}

size_t header_size(std::string_view text, size_t body_bytes) {
  size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc{} || end != text.data() + text.size() || size > body_bytes)
    throw BodyError(ErrorCode::invalid_argument, "",
                    concat("Inference-Header-Content-Length: expected at most the ", body_bytes,
                           " bytes of the body, got \"", printable(text), "\""));
  return size;
}

}  // namespace

InferBody read_infer_body(std::string_view body, std::optional<std::string_view> header_bytes) {
  const size_t json_bytes = header_bytes ? header_size(*header_bytes, body.size()) : body.size();
  const Value tree = read_json(body.substr(0, json_bytes));
  static const Schema<BodyJson> schema = infer_schema({});
  const BodyJson json = schema.read(tree);
  std::string_view rest = body.substr(json_bytes);
  InferBody read{.id = json.id};
  if (json.parameters) read.parameters = *json.parameters;
  for (size_t i = 0; i < json.inputs.size(); ++i)
    read.inputs.push_back(read_input(json.inputs[i], item_path("inputs", i), rest));
  if (!rest.empty())
    throw BodyError(
        ErrorCode::invalid_argument, "",
        concat(rest.size(), " bytes behind the JSON belong to no input: binary_data_size says to which"));
  for (const OutputJson& output : json.outputs) read.outputs.push_back({output.name, output.binary_data});
  return read;
}

std::vector<FieldDoc> infer_body_docs(std::vector<FieldDoc> parameters) {
  return infer_schema(std::move(parameters)).docs();
}

std::vector<std::string> read_bytes_elements(std::string_view bytes, int64_t count,
                                             const std::string& where) {
  std::vector<std::string> elements;
  for (int64_t i = 0; i < count; ++i) elements.emplace_back(take_element(bytes, where));
  if (!bytes.empty())
    throw BodyError(
        ErrorCode::invalid_argument, where,
        concat("expected ", count, " elements as the shape says, found ", bytes.size(), " bytes more"));
  return elements;
}

void append_bytes_element(std::string& out, std::string_view element) {
  if (element.size() > std::numeric_limits<uint32_t>::max())
    fail(ErrorCode::too_large, "an element of ", element.size(), " bytes does not fit in a BYTES tensor");
  for (size_t i = 0; i < kLengthBytes; ++i) out += static_cast<char>(element.size() >> (8 * i) & 0xff);
  out += element;
}

}  // namespace shoal::server
