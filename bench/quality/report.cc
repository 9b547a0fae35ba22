#include "bench/quality/report.h"

#include "base/error.h"
#include "bench/measure/table.h"
#include "shoal/model.h"

namespace shoal::quality {
namespace {

using nlohmann::ordered_json;
using Row = std::vector<std::string>;

// "model": as the precision has it. A folder may have weights of 8 bits itself.
std::string format_of(const EngineConfig& config, std::string_view asked, std::string ModelReport::* stored) {
  if (asked != "auto") return std::string(asked);
  const std::string found = inspect_model(config.model).*stored;
  return found.empty() ? "model" : found;
}

struct Cell {
  const char* key;
  int decimals = 0;
  double factor = 1;
};

// A name, and the members of `figures`.
Row row_of(std::string name, const ordered_json& figures, std::initializer_list<Cell> cells) {
  Row row{std::move(name)};
  for (const Cell& cell : cells) {
    const ordered_json& value = figures.at(cell.key);
    row.push_back(value.is_null()     ? "-"
                  : value.is_string() ? value.get<std::string>()
                                      : bench::decimal(value.get<double>() * cell.factor, cell.decimals));
  }
  return row;
}

void add_heads(std::vector<Row>& rows, const std::string& name, const ordered_json& head) {
  const std::initializer_list<Cell> cells = {
      {"rows"}, {"mean_kl", 5}, {"worst_kl", 4}, {"agreement", 1, 100}};
  rows.push_back(row_of(name, head, cells));
  rows.back().push_back(bench::decimal(100 * head["worst_agreement"].get<double>(), 1));
  rows.back().push_back(
      concat("text ", head["worst_text"].get<int64_t>() + 1, ", frame ", head["worst_frame"].get<int64_t>()));
  for (const ordered_json& position : head["positions"])
    rows.push_back(row_of(concat("  from frame ", position["first_frame"].get<int64_t>()), position, cells));
}

}  // namespace

ordered_json side_of(const EngineConfig& config) {
  const MemoryEstimate estimate = estimate_memory(config);
  int64_t model = 0, codec = 0, kv = 0, positions = 0;
  for (const MemoryPart& part : estimate.parts) {
    if (part.name.starts_with("language model")) model += part.bytes;
    if (part.name.starts_with("codec,")) codec += part.bytes;
    if (part.name == "KV pages") kv += part.bytes;
  }
  for (const auto& [name, value] : estimate.figures)
    if (name == "kv_pages") positions = value * config.kv_page_size;
  return {{"model", config.model.empty() ? "built-in" : config.model},
          {"device", estimate.device},
          {"precision", estimate.formats.precision},
          {"weights", format_of(config, name_of(config.weights), &ModelReport::weights)},
          {"kv_precision", config.kv_precision == KvPrecision::int8 ? "int8" : "model"},
          {"codec_weights", format_of(config, name_of(config.codec_weights), &ModelReport::codec_weights)},
          {"language_model_bytes", model},
          {"codec_bytes", codec},
          {"kv_bytes_per_position", positions > 0 ? kv / positions : 0},
          {"real_time_factor", nullptr}};
}

std::vector<std::string> missed_gates(const ordered_json& evaluation, const Gates& gates) {
  std::vector<std::string> missed;
  for (const char* head : {"semantic", "fast"}) {
    const double kl = evaluation["logits"][head]["mean_kl"];
    if (gates.max_kl && !(kl <= *gates.max_kl))
      missed.push_back(concat("mean KL divergence (", head, "): ", kl, " nats, at most ", *gates.max_kl));
  }
  for (const char* mode : {"sampled", "greedy"}) {
    if (!gates.max_length_ratio || evaluation[mode].is_null()) continue;
    const double most = *gates.max_length_ratio, longest = evaluation[mode]["longest"],
                 shortest = evaluation[mode]["shortest"];
    if (longest > most || shortest * most < 1)
      missed.push_back(concat("lengths (", mode, "): ", shortest, " to ", longest,
                              " of the reference's, expected ", 1 / most, " to ", most));
  }
  return missed;
}

std::string table_of(const ordered_json& e) {
  std::vector<Row> logits{
      {"same codes", "rows", "mean KL", "worst KL", "agree %", "worst text", "worst KL at"}};
  add_heads(logits, "semantic head", e["logits"]["semantic"]);
  add_heads(logits, "fast heads", e["logits"]["fast"]);
  std::vector<Row> speech{{"own codes", "length", "shortest", "1 %", "50 %", "99 %", "longest", "end %",
                           "reference", "MCD, dB", "worst"}};
  for (const char* mode : {"sampled", "greedy"})
    if (!e[mode].is_null())
      speech.push_back(row_of(mode, e[mode],
                              {{"mean_length", 3},
                               {"shortest", 3},
                               {"p01_length", 3},
                               {"p50_length", 3},
                               {"p99_length", 3},
                               {"longest", 3},
                               {"ended", 1, 100},
                               {"ended_reference", 1, 100},
                               {"mean_mcd_db", 2},
                               {"worst_mcd_db", 2}}));
  std::vector<Row> sides{{"", "model", "precision", "weights", "KV", "codec", "model, MB", "codec, MB",
                          "KV, B/position", "real-time factor"}};
  for (const char* side : {"side", "reference"})
    sides.push_back(row_of(side, e[side],
                           {{"model"},
                            {"precision"},
                            {"weights"},
                            {"kv_precision"},
                            {"codec_weights"},
                            {"language_model_bytes", 1, 1e-6},
                            {"codec_bytes", 1, 1e-6},
                            {"kv_bytes_per_position"},
                            {"real_time_factor", 3}}));
  return bench::aligned(logits) + '\n' + (speech.size() > 1 ? bench::aligned(speech) + '\n' : "") +
         bench::aligned(sides);
}

}  // namespace shoal::quality
