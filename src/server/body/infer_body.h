// Requests of the open inference protocol (KServe's v2, and Triton's extensions of it): tensors of texts, in
// JSON or as bytes behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/body/schema.h"

namespace shoal::server {

// Datatype BYTES, the only one that speech is asked with.
struct InferInput {
  std::string name;
  std::vector<int64_t> shape;         // its product is the number of elements
  std::vector<std::string> elements;  // of JSON: texts; of bytes: anything
  bool binary = false;
};

struct InferOutput {
  std::string name;
  std::optional<bool> binary;  // as bytes behind the JSON; absent: as the request says for all
};

struct InferBody {
  std::string id;
  Value parameters = {Value::Object{}};  // of the request: the caller's to read
  std::vector<InferInput> inputs;
  std::vector<InferOutput> outputs;  // none: all that there are
};

// `header_bytes`: of the JSON at the beginning of `body`, where bytes of tensors follow (the header
// Inference-Header-Content-Length); absent: all of it. Throws BodyError(invalid_argument, unsupported) with
// the field: of read_json; unknown fields; a datatype other than BYTES, data that the shape does not count,
// bytes too few or too many.
InferBody read_infer_body(std::string_view body, std::optional<std::string_view> header_bytes);

// The fields of the body; those of `parameters` are the caller's.
std::vector<FieldDoc> infer_body_docs(std::vector<FieldDoc> parameters);

// The elements of a BYTES tensor, which is those of append_bytes_element. Throws BodyError(invalid_argument,
// where) when these bytes are not exactly `count` of them.
std::vector<std::string> read_bytes_elements(std::string_view bytes, int64_t count, const std::string& where);
// An element of a BYTES tensor as bytes: its length in four, little endian, then itself. Throws
// Error(too_large): it does not fit in 32 bits.
void append_bytes_element(std::string& out, std::string_view element);

}  // namespace shoal::server
