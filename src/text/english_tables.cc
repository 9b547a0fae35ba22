#include "text/english_tables.h"

#include <algorithm>
#include <iterator>

#include "text/english_scan.h"

namespace shoal::text {
namespace {

constexpr auto kGlued = Unit::Space::none;

constexpr Unit kUnits[] = {
    {"km/h", "kilometer per hour", "kilometers per hour"},
    {"kph", "kilometer per hour", "kilometers per hour"},
    {"mph", "mile per hour", "miles per hour"},
    {"m/s", "meter per second", "meters per second"},
    {"km/s", "kilometer per second", "kilometers per second"},
    {"mpg", "mile per gallon", "miles per gallon"},
    {"km²", "square kilometer", "square kilometers"},
    {"km2", "square kilometer", "square kilometers"},
    {"m²", "square meter", "square meters"},
    {"m2", "square meter", "square meters"},
    {"cm²", "square centimeter", "square centimeters"},
    {"mi²", "square mile", "square miles"},
    {"ft²", "square foot", "square feet"},
    {"sq ft", "square foot", "square feet"},
    {"sq m", "square meter", "square meters"},
    {"m³", "cubic meter", "cubic meters"},
    {"m3", "cubic meter", "cubic meters"},
    {"cm³", "cubic centimeter", "cubic centimeters"},
    {"km", "kilometer", "kilometers"},
    {"cm", "centimeter", "centimeters"},
    {"mm", "millimeter", "millimeters"},
    {"nm", "nanometer", "nanometers"},
    {"µm", "micrometer", "micrometers"},
    {"μm", "micrometer", "micrometers"},
    {"m", "meter", "meters"},
    {"mi", "mile", "miles"},
    {"ft", "foot", "feet"},
    {"in", "inch", "inches", kGlued},
    {"yd", "yard", "yards"},
    {"kg", "kilogram", "kilograms"},
    {"mg", "milligram", "milligrams"},
    {"µg", "microgram", "micrograms"},
    {"μg", "microgram", "micrograms"},
    {"g", "gram", "grams"},
    {"lbs", "pound", "pounds"},
    {"lb", "pound", "pounds"},
    {"oz", "ounce", "ounces"},
    {"ml", "milliliter", "milliliters"},
    {"mL", "milliliter", "milliliters"},
    {"cl", "centiliter", "centiliters"},
    {"l", "liter", "liters"},
    {"L", "liter", "liters"},
    {"gal", "gallon", "gallons"},
    {"ha", "hectare", "hectares"},
    {"Hz", "hertz", "hertz"},
    {"kHz", "kilohertz", "kilohertz"},
    {"MHz", "megahertz", "megahertz"},
    {"GHz", "gigahertz", "gigahertz"},
    {"W", "watt", "watts"},
    {"kW", "kilowatt", "kilowatts"},
    {"MW", "megawatt", "megawatts"},
    {"GW", "gigawatt", "gigawatts"},
    {"Wh", "watt hour", "watt hours"},
    {"kWh", "kilowatt hour", "kilowatt hours"},
    {"MWh", "megawatt hour", "megawatt hours"},
    {"V", "volt", "volts"},
    {"kV", "kilovolt", "kilovolts"},
    {"mV", "millivolt", "millivolts"},
    {"mA", "milliamp", "milliamps"},
    {"mAh", "milliamp hour", "milliamp hours"},
    {"Ω", "ohm", "ohms"},
    {"KB", "kilobyte", "kilobytes"},
    {"kB", "kilobyte", "kilobytes"},
    {"MB", "megabyte", "megabytes"},
    {"GB", "gigabyte", "gigabytes"},
    {"TB", "terabyte", "terabytes"},
    {"PB", "petabyte", "petabytes"},
    {"KiB", "kibibyte", "kibibytes"},
    {"MiB", "mebibyte", "mebibytes"},
    {"GiB", "gibibyte", "gibibytes"},
    {"MB/s", "megabyte per second", "megabytes per second"},
    {"GB/s", "gigabyte per second", "gigabytes per second"},
    {"TB/s", "terabyte per second", "terabytes per second"},
    {"kbps", "kilobit per second", "kilobits per second"},
    {"Mbps", "megabit per second", "megabits per second"},
    {"Gbps", "gigabit per second", "gigabits per second"},
    {"ns", "nanosecond", "nanoseconds"},
    {"µs", "microsecond", "microseconds"},
    {"μs", "microsecond", "microseconds"},
    {"ms", "millisecond", "milliseconds"},
    {"s", "second", "seconds", kGlued},
    {"sec", "second", "seconds"},
    {"secs", "second", "seconds"},
    {"min", "minute", "minutes"},
    {"mins", "minute", "minutes"},
    {"h", "hour", "hours", kGlued},
    {"hr", "hour", "hours"},
    {"hrs", "hour", "hours"},
    {"yrs", "year", "years"},
    {"wks", "week", "weeks"},
    {"°C", "degree Celsius", "degrees Celsius"},
    {"°F", "degree Fahrenheit", "degrees Fahrenheit"},
    {"℃", "degree Celsius", "degrees Celsius"},
    {"℉", "degree Fahrenheit", "degrees Fahrenheit"},
    {"°", "degree", "degrees"},
    {"Pa", "pascal", "pascals"},
    {"hPa", "hectopascal", "hectopascals"},
    {"kPa", "kilopascal", "kilopascals"},
    {"psi", "P S I", "P S I"},
    {"dB", "decibel", "decibels"},
    {"kJ", "kilojoule", "kilojoules"},
    {"kcal", "kilocalorie", "kilocalories"},
    {"rpm", "R P M", "R P M"},
    {"fps", "frame per second", "frames per second"},
    {"bpm", "beat per minute", "beats per minute"},
    {"px", "pixel", "pixels"},
    {"%", "percent", "percent"},
    {"‰", "per mille", "per mille"},
    {"x", "time", "times", kGlued},
    {"×", "time", "times", kGlued},
    {"M", "million", "million", kGlued},
    {"bn", "billion", "billion", kGlued},
    {"USD", "US dollar", "US dollars"},
    {"EUR", "euro", "euros"},
    {"GBP", "British pound", "British pounds"},
    {"¢", "cent", "cents"},
};

constexpr Currency kCurrencies[] = {
    {"US$", "US dollar", "US dollars", "cent", "cents"},
    {"A$", "Australian dollar", "Australian dollars", "cent", "cents"},
    {"C$", "Canadian dollar", "Canadian dollars", "cent", "cents"},
    {"$", "dollar", "dollars", "cent", "cents"},
    {"£", "pound", "pounds", "penny", "pence"},
    {"€", "euro", "euros", "cent", "cents"},
    {"¥", "yen", "yen", "", ""},
    {"₹", "rupee", "rupees", "paisa", "paise"},
    {"₩", "won", "won", "", ""},
};

constexpr Multiplier kMultipliers[] = {
    {"hundred", "hundred"},   {"thousand", "thousand"}, {"million", "million"}, {"billion", "billion"},
    {"trillion", "trillion"}, {"k", "thousand"},        {"K", "thousand"},      {"m", "million"},
    {"M", "million"},         {"mn", "million"},        {"bn", "billion"},      {"b", "billion"},
    {"B", "billion"},         {"tn", "trillion"},       {"T", "trillion"}};

struct Alias {
  std::string_view spelling, word;
};
constexpr Alias kRates[] = {
    {"second", "second"}, {"sec", "second"},    {"s", "second"},    {"minute", "minute"},
    {"min", "minute"},    {"hour", "hour"},     {"hr", "hour"},     {"h", "hour"},
    {"day", "day"},       {"d", "day"},         {"night", "night"}, {"week", "week"},
    {"wk", "week"},       {"month", "month"},   {"mo", "month"},    {"year", "year"},
    {"yr", "year"},       {"person", "person"}, {"user", "user"},   {"seat", "seat"},
    {"unit", "unit"},     {"piece", "piece"},   {"item", "item"},   {"kg", "kilogram"},
    {"g", "gram"},        {"lb", "pound"},      {"oz", "ounce"},    {"mile", "mile"},
    {"km", "kilometer"},  {"gallon", "gallon"}, {"gal", "gallon"},  {"liter", "liter"},
    {"l", "liter"},       {"L", "liter"},       {"token", "token"}};

constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

constexpr auto kAlways = Abbreviation::When::always;
constexpr auto kBeforeCapital = Abbreviation::When::before_capital;
constexpr auto kAfterCapital = Abbreviation::When::after_capital;
constexpr auto kBeforeNumber = Abbreviation::When::before_number;

constexpr Abbreviation kAbbreviations[] = {
    {"Mr", "Mister", kAlways},
    {"Mrs", "Missus", kAlways},
    {"Ms", "Miz", kAlways},
    {"Dr", "Doctor", kBeforeCapital},
    {"Dr", "Drive", kAfterCapital, true},
    {"Prof", "Professor", kAlways},
    {"Rev", "Reverend", kBeforeCapital},
    {"Hon", "Honorable", kBeforeCapital},
    {"Gen", "General", kBeforeCapital},
    {"Col", "Colonel", kBeforeCapital},
    {"Maj", "Major", kBeforeCapital},
    {"Capt", "Captain", kBeforeCapital},
    {"Lt", "Lieutenant", kBeforeCapital},
    {"Sgt", "Sergeant", kBeforeCapital},
    {"Gov", "Governor", kBeforeCapital},
    {"Sen", "Senator", kBeforeCapital},
    {"Rep", "Representative", kBeforeCapital},
    {"Pres", "President", kBeforeCapital},
    {"St", "Saint", kBeforeCapital},
    {"St", "Street", kAfterCapital, true},
    {"Mt", "Mount", kBeforeCapital},
    {"Ft", "Fort", kBeforeCapital},
    {"Ave", "Avenue", kAfterCapital, true},
    {"Blvd", "Boulevard", kAfterCapital, true},
    {"Rd", "Road", kAfterCapital, true},
    {"Jr", "Junior", kAlways, true},
    {"Sr", "Senior", kAlways, true},
    {"Inc", "Incorporated", kAlways, true},
    {"Ltd", "Limited", kAlways, true},
    {"Corp", "Corporation", kAlways, true},
    {"Co", "Company", kAlways, true},
    {"Dept", "Department", kAlways},
    {"dept", "department", kAlways, true},
    {"approx", "approximately", kAlways},
    {"vs", "versus", kAlways},
    {"etc", "et cetera", kAlways, true},
    {"e.g", "for example", kAlways},
    {"E.g", "For example", kAlways},
    {"i.e", "that is", kAlways},
    {"I.e", "That is", kAlways},
    {"No", "number", kBeforeNumber},
    {"no", "number", kBeforeNumber},
    {"Nos", "numbers", kBeforeNumber},
    {"Vol", "Volume", kBeforeNumber},
    {"vol", "volume", kBeforeNumber},
    {"Fig", "Figure", kBeforeNumber},
    {"fig", "figure", kBeforeNumber},
    {"Ch", "Chapter", kBeforeNumber},
    {"ch", "chapter", kBeforeNumber},
    {"pp", "pages", kBeforeNumber},
    {"p", "page", kBeforeNumber},
};

constexpr std::string_view kRegnalNames[] = {
    "Alexander", "Alfonso",   "Benedict",  "Catherine", "Charles",   "Christian", "Clement",
    "Edward",    "Elizabeth", "Ferdinand", "Francis",   "Frederick", "George",    "Gregory",
    "Gustav",    "Henry",     "Innocent",  "Ivan",      "James",     "Leo",       "Louis",
    "Mary",      "Napoleon",  "Nicholas",  "Otto",      "Paul",      "Peter",     "Philip",
    "Pius",      "Ramesses",  "Richard",   "Urban",     "Wilhelm",   "William",   "Xerxes"};

constexpr std::string_view kCountedInRoman[] = {"Act",     "Appendix", "Article", "Book",  "Bowl",
                                                "Chapter", "Class",    "Part",    "Phase", "Scene",
                                                "Type",    "Volume",   "War"};

template <size_t n>
bool lists(const std::string_view (&list)[n], std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

}  // namespace

const Unit* find_unit(std::string_view text, size_t at) {
  const Unit* longest = nullptr;
  for (const Unit& unit : kUnits) {
    if (unit.symbol[0] != char_at(text, at)) continue;  // nearly all, at every number
    if (!starts_at(text, at, unit.symbol) || (longest && longest->symbol.size() >= unit.symbol.size()))
      continue;
    if (!is_word_at(text, at + unit.symbol.size())) longest = &unit;
  }
  return longest;
}

const Currency* find_currency(std::string_view text, size_t at) {
  for (const Currency& currency : kCurrencies) {
    if (currency.symbol[0] == char_at(text, at) && starts_at(text, at, currency.symbol)) return &currency;
  }
  return nullptr;
}

std::span<const Multiplier> money_multipliers() { return kMultipliers; }

std::string_view find_rate(std::string_view word) {
  for (const Alias& rate : kRates) {
    if (rate.spelling == word) return rate.word;
  }
  return {};
}

std::string_view find_month(std::string_view word) {
  if (word == "Sept") return "September";
  if (word.size() < 3 || !is_upper_ascii(word[0])) return {};
  for (const std::string_view month : kMonths) {
    if (word == month || (word.size() == 3 && month.starts_with(word))) return month;
  }
  return {};
}

std::span<const Abbreviation> find_abbreviations(std::string_view spelling) {
  const auto* begin = std::find_if(std::begin(kAbbreviations), std::end(kAbbreviations),
                                   [&](const Abbreviation& a) { return a.spelling == spelling; });
  const auto* end = std::find_if(begin, std::end(kAbbreviations),
                                 [&](const Abbreviation& a) { return a.spelling != spelling; });
  return {begin, end};
}

bool is_said_after_capital(std::string_view word) {
  return std::any_of(std::begin(kAbbreviations), std::end(kAbbreviations),
                     [&](const Abbreviation& a) { return a.when == kAfterCapital && a.words == word; });
}

bool is_regnal_name(std::string_view word) { return lists(kRegnalNames, word); }
bool is_counted_in_roman(std::string_view word) { return lists(kCountedInRoman, word); }

}  // namespace shoal::text
