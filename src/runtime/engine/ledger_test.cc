#include "runtime/engine/ledger.h"

#include <gtest/gtest.h>

namespace shoal::runtime {
namespace {

TEST(Ledger, AnAdmittedRequestRunsBeforeTheNextDescription) {
  Ledger ledger(8, 4);
  ledger.enter(Stage::waiting, 1, {});
  ledger.set_activity(0, 0, 0);
  ledger.move(Stage::waiting, Stage::active, 1);
  EXPECT_EQ(ledger.statistics().waiting, 0);
  EXPECT_EQ(ledger.statistics().running, 1);
  ledger.set_activity(0, 1, 0);
  EXPECT_EQ(ledger.statistics().running, 0);
  EXPECT_EQ(ledger.statistics().paused, 1);
}

}  // namespace
}  // namespace shoal::runtime
