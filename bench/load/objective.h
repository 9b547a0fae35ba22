// What a request must keep to count as good: `--slo "ttfa_ms=200,underruns=0"`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/load/request_figures.h"

namespace shoal::load {

struct Objective {
  std::string name;
  double most = 0;
};

// NAME=NUMBER, with commas between. Throws Error(invalid_argument) that lists the names.
std::vector<Objective> parse_objectives(std::string_view text);

// "first_byte_ms, first_sound_ms, ..."
std::string names_of_objectives();

// A request that failed keeps nothing; one that has no such figure (silence throughout) breaks it.
bool keeps(const std::vector<Objective>& objectives, const RequestRecord& record,
           const RequestFigures& figures);

}  // namespace shoal::load
