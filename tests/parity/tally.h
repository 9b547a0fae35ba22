// Counts what a check of a folder tried, case by case, and which values were missing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::parity {

class Tally {
 public:
  // check: "language model, f32"
  Tally(std::string dir, std::string check) : dir_(std::move(dir)), check_(std::move(check)) {}

  // `values` numbers of `what` were compared in a case.
  void tried(const std::string& of_case, const std::string& what, int64_t values);
  // An optional value that is missing.
  void absent(const std::string& of_case, const std::string& what);
  int64_t values() const;

  // Prints a line for each case, counts it for the folder's total and records it with the running test.
  void report() const;
  // The same; a GoogleTest failure if nothing was compared.
  void report_something() const;

 private:
  struct Case {
    std::string name;
    std::vector<std::string> tried, absent;  // each once
    int64_t values = 0;
  };
  Case& find(const std::string& name);

  std::string dir_, check_;
  std::vector<Case> cases_;  // by first mention
};

// Prints what all tallies of a folder reported.
void print_total(const std::string& dir);

}  // namespace shoal::parity
