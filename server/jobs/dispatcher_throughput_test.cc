// Prints how many units a second go through the dispatcher and the store, durably, with many
// workers at once. It asserts that nothing is lost or counted twice, not how fast that is.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/jobs/testing/fake_worker.h"
#include "server/jobs/testing/jobs_fixture.h"

namespace hopscope::jobs {
namespace {

using testing::FakeWorker;
using testing::JobsTest;
using testing::SmallSpec;

class DispatcherThroughputTest : public JobsTest {
 protected:
  void Measure(int threads, int units_per_lease, int64_t samples) {
    v1::EvalJobSpec spec = SmallSpec();
    spec.mutable_tasks(0)->set_samples(samples);
    const std::string job = Create(spec);
    std::atomic<int> units = 0;
    const auto start = std::chrono::steady_clock::now();
    {
      std::vector<std::thread> workers;
      for (int i = 0; i < threads; ++i) {
        workers.emplace_back([this, i, units_per_lease, &units] {
          FakeWorker worker(dispatcher_.get(), absl::StrCat("workers/w", i));
          units += worker.RunAll(units_per_lease);
        });
      }
      for (std::thread& worker : workers) worker.join();
    }
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%d workers, %d units a lease: %d units in %.2f s, %.0f units/s\n", threads,
                units_per_lease, units.load(), seconds, units / seconds);
    const v1::EvalJob done = Get(job);
    EXPECT_EQ(done.state(), v1::EvalJob::STATE_SUCCEEDED);
    EXPECT_EQ(done.totals().units(), units);
    EXPECT_EQ(done.totals().units_completed(), units);
    EXPECT_EQ(done.totals().items_completed(), samples);
  }
};

TEST_F(DispatcherThroughputTest, UnitsOneByOne) { Measure(64, 1, 200'000); }
TEST_F(DispatcherThroughputTest, UnitsByFours) { Measure(64, 4, 200'000); }

}  // namespace
}  // namespace hopscope::jobs
