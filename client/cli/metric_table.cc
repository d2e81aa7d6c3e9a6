#include "client/cli/metric_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/number_text.h"
#include "client/cli/params_text.h"
#include "client/cli/text_table.h"
#include "common/scores/weighted_id.h"

namespace hopscope::cli {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A row: hop step and layer, and the head where each has its own.
using Row = std::tuple<int32_t, int32_t, int32_t>;

// What one head has of one metric: by plane, the parts that are pooled.
struct HeadParts {
  std::vector<std::vector<ScoreEstimate>> planes;
  double min = std::numeric_limits<double>::infinity();
};

struct Metric {
  bool has_planes = false;
  bool has_extremes = false;
  std::map<Row, HeadParts> heads;  // by step, layer and head
};

struct Table {
  std::string scorer;
  v1::Cell cell;  // of its first score
  std::string params;
  bool has_steps = false;
  std::set<int32_t> hops;
  std::vector<std::string> order;  // of the metrics
  std::map<std::string, Metric> metrics;
  // Metric and hops of what is in here.
  std::set<std::pair<std::string, int32_t>> seen;
};

void AddScores(const v1::HeadScores& scores, Table& table) {
  const int64_t steps = std::max(scores.steps(), 1);
  const int64_t layers = scores.layers();
  const int64_t heads = scores.heads();
  const int64_t planes = std::max(scores.planes(), 1);
  const int64_t size = scores.mean_size();
  // A message of the wrong size shows nothing. Products of 32-bit sizes, two at a time, fit.
  if (layers <= 0 || heads <= 0 || steps * layers > size || heads * planes > size ||
      steps * layers * heads * planes != size || scores.standard_error_size() != size ||
      scores.items_size() != size) {
    return;
  }
  const auto [place, is_new] = table.metrics.try_emplace(scores.metric());
  if (is_new) table.order.push_back(scores.metric());
  Metric& metric = place->second;
  metric.has_planes = scores.planes() > 0;
  metric.has_extremes = scores.min_size() == size;
  int at = 0;
  for (int32_t step = 0; step < steps; ++step) {
    for (int32_t layer = 0; layer < layers; ++layer) {
      for (int32_t head = 0; head < heads; ++head) {
        HeadParts& parts = metric.heads[{step, layer, head}];
        parts.planes.resize(planes);
        for (int64_t plane = 0; plane < planes; ++plane, ++at) {
          parts.planes[plane].push_back(
              {scores.items(at), scores.mean(at), scores.standard_error(at)});
          if (metric.has_extremes && scores.items(at) > 0) {
            parts.min = std::min(parts.min, scores.min(at));
          }
        }
      }
    }
  }
  table.hops.insert(scores.cell().hops());
  table.has_steps = table.has_steps || scores.steps() > 0;
}

std::string EstimateText(double mean, double standard_error) {
  if (!std::isfinite(mean)) return "-";
  return absl::StrCat(Fixed(mean, 3), " \xc2\xb1", Fixed(standard_error, 3));
}

// The mean over heads that have a value; NaN where none has.
double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  int count = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? kNan : sum / count;
}

struct Column {
  std::string title;
  std::map<Row, std::string> cells;
};

// The columns of one metric, heads of a row taken together.
std::vector<Column> ColumnsOf(const std::string& name, const Metric& metric, bool per_head,
                              int64_t* min_items, int64_t* max_items) {
  std::map<Row, std::vector<const HeadParts*>> rows;
  for (const auto& [place, parts] : metric.heads) {
    const auto [step, layer, head] = place;
    rows[{step, layer, per_head ? head : 0}].push_back(&parts);
  }
  Column values{.title = name};
  Column extremes{.title = absl::StrCat("min ", name)};
  Column peaks{.title = absl::StrCat(name, " peak")};
  Column ids{.title = "weighted ID"};
  for (const auto& [row, heads] : rows) {
    std::vector<double> means;
    std::vector<double> errors;
    std::vector<double> weighted;
    std::vector<double> profile(heads.front()->planes.size(), 0);
    double min = std::numeric_limits<double>::infinity();
    for (const HeadParts* head : heads) {
      std::vector<double> pooled;
      for (size_t plane = 0; plane < head->planes.size(); ++plane) {
        const ScoreEstimate estimate = Pool(head->planes[plane]);
        *min_items = std::min(*min_items, estimate.items);
        *max_items = std::max(*max_items, estimate.items);
        pooled.push_back(estimate.mean);
        if (plane < profile.size()) profile[plane] += estimate.mean;
        if (metric.has_planes) continue;
        means.push_back(estimate.mean);
        errors.push_back(estimate.standard_error);
      }
      weighted.push_back(scores::WeightedId(pooled.data(), static_cast<int64_t>(pooled.size())));
      min = std::min(min, head->min);
    }
    values.cells[row] = EstimateText(MeanOf(means), MeanOf(errors));
    extremes.cells[row] = std::isfinite(min) ? Fixed(min, 3) : "-";
    const auto peak = std::max_element(profile.begin(), profile.end());
    const double largest = *peak / static_cast<double>(heads.size());
    peaks.cells[row] = std::isfinite(largest)
                           ? absl::StrCat(Fixed(largest, 3), " at ", peak - profile.begin() + 1)
                           : "-";
    ids.cells[row] = Fixed(MeanOf(weighted), 2);
  }
  std::vector<Column> columns;
  if (metric.has_planes) {
    columns.push_back(std::move(peaks));
    if (name == "max_logit") columns.push_back(std::move(ids));
    return columns;
  }
  columns.push_back(std::move(values));
  if (metric.has_extremes) columns.push_back(std::move(extremes));
  return columns;
}

std::string Render(const Table& table, bool name_seed, const LayerTableOptions& options) {
  int64_t min_items = std::numeric_limits<int64_t>::max();
  int64_t max_items = 0;
  std::vector<Column> columns;
  bool several_heads = false;
  bool planes = false;
  for (const std::string& name : table.order) {
    const Metric& metric = table.metrics.at(name);
    for (Column& column : ColumnsOf(name, metric, options.per_head, &min_items, &max_items)) {
      columns.push_back(std::move(column));
    }
    for (const auto& [place, parts] : metric.heads) {
      several_heads = several_heads || (!options.per_head && std::get<2>(place) > 0);
    }
    planes = planes || metric.has_planes;
  }
  std::string text = absl::StrCat(
      table.scorer, ": ", table.cell.task(), ", ", table.cell.checkpoint(),
      name_seed ? absl::StrCat(", seed ", table.cell.seed()) : "", ", +", table.cell.added_tokens(),
      ", ", table.hops.size() == 1 ? "hops " : "pooled over hops ", absl::StrJoin(table.hops, ", "),
      ", n=",
      min_items == max_items ? Count(max_items)
                             : absl::StrCat(Count(min_items), "-", Count(max_items)),
      "\n");
  if (!table.params.empty()) {
    absl::StrAppend(&text, "  ", CutToWidth(table.params, options.width - 2), "\n");
  }
  absl::StrAppend(&text, "  ",
                  planes          ? "largest mean over planes, and the plane, from 1"
                  : several_heads ? "mean over heads \xc2\xb1 mean of their standard errors"
                                  : "mean \xc2\xb1 standard error",
                  planes && several_heads ? "; means over heads" : "", "\n");

  for (size_t first = 0; first < columns.size();) {
    std::vector<Align> alignments;
    std::vector<std::string> header;
    for (const auto& [title, shown] : {std::pair{"step", table.has_steps}, std::pair{"layer", true},
                                       std::pair{"head", options.per_head}}) {
      if (!shown) continue;
      alignments.push_back(Align::kRight);
      header.emplace_back(title);
    }
    size_t width = 2 + 7 * header.size();
    size_t last = first;
    std::set<Row> rows;
    for (; last < columns.size(); ++last) {
      size_t needed = columns[last].title.size();
      for (const auto& [row, cell] : columns[last].cells) {
        needed = std::max(needed, DisplayWidth(cell));
      }
      if (last > first && width + needed + 2 > options.width) break;
      width += needed + 2;
      alignments.push_back(Align::kLeft);
      header.push_back(columns[last].title);
      for (const auto& [row, cell] : columns[last].cells) rows.insert(row);
    }
    TextTable lines(std::move(alignments));
    lines.AddRow(std::move(header));
    for (const Row& row : rows) {
      const auto [step, layer, head] = row;
      std::vector<std::string> cells;
      if (table.has_steps) cells.push_back(absl::StrCat(step));
      cells.push_back(absl::StrCat(layer));
      if (options.per_head) cells.push_back(absl::StrCat(head));
      for (size_t column = first; column < last; ++column) {
        const auto cell = columns[column].cells.find(row);
        cells.push_back(cell == columns[column].cells.end() ? "" : cell->second);
      }
      lines.AddRow(std::move(cells));
    }
    absl::StrAppend(&text, lines.Render(2));
    first = last;
  }
  return text;
}

}  // namespace

bool IsMetricScore(const v1::HeadScores& scores) {
  // These two have tables of their own.
  return scores.scorer() != "positional_symbolic" && scores.scorer() != "ablation" &&
         scores.layers() > 0 && scores.heads() > 0;
}

std::vector<std::string> MetricTables(const std::vector<v1::HeadScores>& scores,
                                      const LayerTableOptions& options) {
  // Tables in the order in which they first come.
  using Key = std::tuple<std::string, std::string, int64_t, int32_t, std::string, std::string,
                         int32_t, int>;
  std::map<Key, size_t> places;
  std::vector<Table> tables;
  std::set<int64_t> seeds;
  for (const v1::HeadScores& score : scores) {
    if (!IsMetricScore(score)) continue;
    const v1::Cell& cell = score.cell();
    const std::string params = ParamsText(score.params());
    // Hop steps are as many as the hops: such scores cannot be pooled over hops.
    const int32_t hops = options.by_hops || score.steps() > 0 ? cell.hops() : 0;
    // The same sequences a second time must not be pooled with the first.
    for (int repeat = 0;; ++repeat) {
      const auto [place, is_new] =
          places.try_emplace({cell.checkpoint(), cell.task(), cell.seed(), cell.added_tokens(),
                              score.scorer(), params, hops, repeat},
                             tables.size());
      if (is_new) tables.push_back({.scorer = score.scorer(), .cell = cell, .params = params});
      Table& table = tables[place->second];
      if (!table.seen.emplace(score.metric(), cell.hops()).second) continue;
      AddScores(score, table);
      break;
    }
    seeds.insert(cell.seed());
  }
  std::vector<std::string> texts;
  for (const Table& table : tables) {
    if (!table.metrics.empty()) texts.push_back(Render(table, seeds.size() > 1, options));
  }
  return texts;
}

}  // namespace hopscope::cli
