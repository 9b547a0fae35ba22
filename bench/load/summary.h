// Figures as JSON and tables. docs/BENCH.md describes the names.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "bench/load/level_figures.h"
#include "bench/runs/run_folder.h"

namespace shoal::load {

// One line of requests.jsonl. Times of the run count from `origin_us`.
nlohmann::ordered_json json_of(const RequestRecord& record, const RequestFigures& figures, bool good,
                               int64_t origin_us);
nlohmann::ordered_json json_of(const LevelFigures& figures);
nlohmann::ordered_json json_of(const bench::Promise& promise);
// Replaces the summaries of the run. promises: none if nothing is judged.
void write_levels(runs::RunFolder& folder, std::span<const LevelFigures> levels,
                  std::span<const bench::Promise> promises = {});
// Two runs of the same levels: what the second gives as a multiple of the first.
std::string comparison_table(std::span<const LevelFigures> first, std::span<const LevelFigures> second);
// For people.
std::string table_of(std::span<const LevelFigures> levels);

}  // namespace shoal::load
