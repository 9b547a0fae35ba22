#include "text/phonemes/pieces.h"

#include <gtest/gtest.h>

namespace shoal::phonemes {
namespace {

// Words as they are, marks in braces by their phonemes, _ for a space.
std::string show(const std::vector<Piece>& pieces) {
  std::string out;
  for (const Piece& piece : pieces) {
    out += piece.phonemes ? "{" + *piece.phonemes + "}" : "<" + piece.text + ">";
    if (piece.space_after) out += "_";
  }
  return out;
}

TEST(SplitEnglish, WordsAndMarks) {
  EXPECT_EQ(show(split_english("Hello, world!")), "<Hello>{,}_<world>{!}");
  EXPECT_EQ(show(split_english("Wait... what?!")), "<Wait>{...}_<what>{?}{!}");
  EXPECT_EQ(show(split_english("a (b) [c]")), "<a>_{(}<b>{)}_{(}<c>{)}");
  EXPECT_EQ(show(split_english("")), "");
  EXPECT_EQ(show(split_english("!!!!!!")), "{!!!}");
}

TEST(SplitEnglish, QuotesOpenOrCloseByTheirPosition) {
  EXPECT_EQ(show(split_english("He said \"stop\".")), "<He>_<said>_{“}<stop>{”}{.}");
  EXPECT_EQ(show(split_english("(\"a\") “b” «c»")), "{(}{“}<a>{”}{)}_{“}<b>{”}_{“}<c>{”}");
}

TEST(SplitEnglish, ApostrophesAndHyphensInsideWords) {
  EXPECT_EQ(show(split_english("don't well-known dogs' 'quoted'")), "<don't>_<well-known>_<dogs>_<quoted>_");
  EXPECT_EQ(show(split_english("rock 'n' roll, 'em")), "<rock>_<'n'>_<roll>{,}_<'em>");
  EXPECT_EQ(show(split_english("one - two – three—four -- five")),
            "<one>_{—}_<two>_{—}_<three>{—}<four>_{—}_<five>");
  EXPECT_EQ(show(split_english("- item")), "<item>");
}

TEST(SplitEnglish, Initialisms) {
  EXPECT_EQ(show(split_english("the U.S. army")), "<the>_<U.S.>_<army>");
  EXPECT_EQ(show(split_english("in the U.S.")), "<in>_<the>_<U.S>{.}");
  EXPECT_EQ(show(split_english("(the U.S.)")), "{(}<the>_<U.S>{.}{)}");
  EXPECT_EQ(show(split_english("a Ph.D. here")), "<a>_<Ph.D.>_<here>");
  EXPECT_EQ(show(split_english("no.It is")), "<no>{.}<It>_<is>");
  EXPECT_EQ(show(split_english("end. A b")), "<end>{.}_<A>_<b>");
  EXPECT_EQ(show(split_english("A. b")), "<A>{.}_<b>");
}

TEST(SplitEnglish, SignsAreWordsOrSilent) {
  EXPECT_EQ(show(split_english("salt & pepper 5% a_b #x *y*")),
            "<salt>_<and>_<pepper>_<5>_<percent>_<a>_<b>_<x>_<y>_");
  EXPECT_EQ(show(split_english("😀 ok 你好")), "<ok>_<你好>");
}

TEST(SplitEnglish, LongWordsAreCut) {
  const std::vector<Piece> pieces = split_english(std::string(100'000, 'x'));
  std::string joined;
  for (const Piece& piece : pieces) {
    EXPECT_LE(piece.text.size(), kMaxWordBytes);
    joined += piece.text;
  }
  EXPECT_EQ(joined, std::string(100'000, 'x'));
}

TEST(SplitAtMarks, KeepsMarksAsTheyAreWritten) {
  EXPECT_EQ(show(split_at_marks("¿Cómo (estás) hoy, señor?")), "{¿}<Cómo>_<(estás)>_<hoy>{,}_<señor>{?}");
  EXPECT_EQ(show(split_at_marks("aujourd’hui ?")), "<aujourd’hui>_{?}");
  EXPECT_EQ(show(split_at_marks("$5.50")), "<$5>{.}<50>");
}

}  // namespace
}  // namespace shoal::phonemes
