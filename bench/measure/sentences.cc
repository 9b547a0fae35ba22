#include "bench/measure/sentences.h"

#include <array>

namespace shoal::bench {
namespace {

constexpr auto kSentences = std::to_array<std::string_view>({
    "Please call me back soon.",
    "The last train to the coast leaves at nine, and the one before it is often late.",
    "Your parcel has left our warehouse and will arrive on Thursday between ten and noon.",
    "Thank you for waiting.",
    "When the river froze in the winter of that year, the children of the village skated to school, and the "
    "baker "
    "followed them with a sledge full of warm rolls.",
    "The kitchen is open until eight.",
    "We have looked into the charge on your account, and the amount has been returned to your card.",
    "Turn left after the bridge, follow the road along the lake for two miles, and you will see the white "
    "house "
    "with the green door on your right.",
    "It will rain in the afternoon, but the evening stays dry and mild.",
    "Mix the flour with a little salt, add the butter in small pieces, and work it with cold hands until it "
    "looks "
    "like coarse sand. Then pour in the water, a spoon at a time, and stop as soon as the dough holds "
    "together.",
    "Yes, that is right.",
    "The museum keeps a small collection of clocks, and every one of them shows a different time.",
    "Our office will be closed on Monday. Messages are answered on the following day.",
    "She opened the old box, found nothing in it but a letter without a name, and read it twice before she "
    "put it "
    "back where it had been for thirty years.",
    "Take one tablet in the morning and one in the evening, each with a glass of water.",
    "A good map does not show everything. It leaves out what would hide the way, and so the person who draws "
    "it has "
    "to know two things: where people want to go, and what they can do without. Most bad maps are made by "
    "people "
    "who knew the country very well and could not bear to leave anything out.",
});

constexpr auto kPeople = std::to_array<std::string_view>({
    "Anna",    "Boris", "Clara",  "Daniel", "Esther", "Frank",  "Greta",  "Hugo",
    "Irene",   "Jonas", "Karin",  "Leo",    "Maria",  "Nathan", "Olga",   "Paul",
    "Quentin", "Rosa",  "Samuel", "Teresa", "Ulrich", "Vera",   "Walter", "Yvonne",
});

constexpr auto kPlaces = std::to_array<std::string_view>({
    "Athens",  "Bergen", "Cardiff", "Dublin", "Essen",   "Florence", "Geneva", "Hamburg",
    "Ipswich", "Jena",   "Kyoto",   "Lisbon", "Madrid",  "Nairobi",  "Oslo",   "Prague",
    "Quebec",  "Riga",   "Seville", "Turin",  "Utrecht", "Vienna",   "Warsaw", "Zagreb",
});

}  // namespace

std::span<const std::string_view> sentences() { return kSentences; }
std::span<const std::string_view> people() { return kPeople; }
std::span<const std::string_view> places() { return kPlaces; }

}  // namespace shoal::bench
