// For tests: what every store must do, whatever is behind it. A store's own test instantiates the
// suite with a factory:
//
//   INSTANTIATE_TEST_SUITE_P(Sqlite, StoreSuite, ::testing::Values(&MakeSqliteFixture));
#ifndef HOPSCOPE_SERVER_STORE_TESTING_STORE_SUITE_H_
#define HOPSCOPE_SERVER_STORE_TESTING_STORE_SUITE_H_

#include <memory>

#include "gtest/gtest.h"
#include "server/store/store.h"

namespace hopscope::store::testing {

// One empty store, which can be closed and opened again with its content.
class StoreFixture {
 public:
  virtual ~StoreFixture() = default;
  virtual Store& store() = 0;
  virtual void Reopen() = 0;
};

using StoreFixtureFactory = std::unique_ptr<StoreFixture> (*)();

class StoreSuite : public ::testing::TestWithParam<StoreFixtureFactory> {
 protected:
  void SetUp() override { fixture_ = GetParam()(); }
  Store& store() { return fixture_->store(); }

  // Run a body that must work.
  void Write(Store::WriteBody body);
  void Read(Store::ReadBody body);

  std::unique_ptr<StoreFixture> fixture_;
};

// A job with every field set that a new job has, and cells to go with it.
JobRow MakeJobRow(const std::string& id);
JobPlanRow MakeJobPlanRow();
CellRow MakeCellRow(JobKey job, int32_t index);

}  // namespace hopscope::store::testing

#endif  // HOPSCOPE_SERVER_STORE_TESTING_STORE_SUITE_H_
