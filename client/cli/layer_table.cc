#include "client/cli/layer_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/number_text.h"
#include "client/cli/params_text.h"
#include "client/cli/text_table.h"

namespace hopscope::cli {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// One head of one layer (and one hop step) in one column of a table.
struct HeadPlace {
  int32_t step = 0;
  int32_t layer = 0;
  int32_t head = 0;
  bool operator<(const HeadPlace& other) const {
    return std::tie(step, layer, head) < std::tie(other.step, other.layer, other.head);
  }
};

struct HeadParts {
  std::vector<ScoreEstimate> positional;
  std::vector<ScoreEstimate> symbolic;
  std::vector<ScoreEstimate> swapped_mass;
  std::vector<ScoreEstimate> contrast;
};

// What one table shows.
struct Table {
  std::string checkpoint;
  std::string task;
  int64_t seed = 0;
  std::string params;
  bool has_steps = false;
  bool has_labels = true;
  std::set<int32_t> hops;
  // Metric, hops and added tokens of what is in here.
  std::set<std::tuple<std::string, int32_t, int32_t>> seen;
  // By added tokens.
  std::map<int32_t, std::map<HeadPlace, HeadParts>> columns;
};

std::vector<ScoreEstimate>& PartsOf(const std::string& metric, HeadParts& parts) {
  if (metric == "positional") return parts.positional;
  if (metric == "symbolic") return parts.symbolic;
  return metric == "contrast" ? parts.contrast : parts.swapped_mass;
}

void AddScores(const v1::HeadScores& scores, Table& table) {
  const int64_t steps = std::max(scores.steps(), 1);
  const int64_t layers = scores.layers();
  const int64_t heads = scores.heads();
  const int64_t planes = std::max(scores.planes(), 1);
  const int64_t size = scores.mean_size();
  // Planes are not shown here; a message of the wrong size shows nothing.
  if (layers <= 0 || heads <= 0 || planes != 1 || steps * layers * heads != size ||
      scores.standard_error_size() != size || scores.items_size() != size) {
    return;
  }
  auto& column = table.columns[scores.cell().added_tokens()];
  int at = 0;
  for (int32_t step = 0; step < steps; ++step) {
    for (int32_t layer = 0; layer < layers; ++layer) {
      for (int32_t head = 0; head < heads; ++head, ++at) {
        HeadParts& parts = column[{step, layer, head}];
        PartsOf(scores.metric(), parts)
            .push_back({scores.items(at), scores.mean(at), scores.standard_error(at)});
      }
    }
  }
  table.hops.insert(scores.cell().hops());
  table.has_steps = table.has_steps || scores.steps() > 0;
  const auto& flags = scores.flags();
  if (std::find(flags.begin(), flags.end(), common::kPositionInContent) != flags.end()) {
    table.has_labels = false;
  }
}

// The three cells of one row in one column group.
std::vector<std::string> ScoreCells(const ScoreEstimate& positional, const ScoreEstimate& symbolic,
                                    const std::string& label) {
  const auto text = [](const ScoreEstimate& score) {
    return score.items == 0
               ? "-"
               : absl::StrCat(Fixed(score.mean, 3), " \xc2\xb1", Fixed(score.standard_error, 3));
  };
  return {text(positional), text(symbolic), label};
}

ScoreEstimate MeanOverHeads(const std::vector<ScoreEstimate>& heads) {
  ScoreEstimate mean{0, 0, 0};
  int counted = 0;
  for (const ScoreEstimate& head : heads) {
    if (head.items == 0) continue;
    mean.items = std::max(mean.items, head.items);
    mean.mean += head.mean;
    mean.standard_error += head.standard_error;
    ++counted;
  }
  if (counted == 0) return {0, kNan, kNan};
  return {mean.items, mean.mean / counted, mean.standard_error / counted};
}

// Rows by place, each with its three cells, and the range of item counts.
struct RenderedColumn {
  std::map<HeadPlace, std::vector<std::string>> rows;
  int64_t min_items = std::numeric_limits<int64_t>::max();
  int64_t max_items = 0;
};

// The labels of some heads at one gamma: "pos", or of several heads "2 pos 1 sym".
std::string LabelsText(const std::vector<common::LabelledScores>& heads, size_t all_heads,
                       double gamma) {
  std::map<common::HeadLabel, int> labels;
  for (const common::LabelledScores& head : heads) ++labels[common::LabelOf(head, gamma)];
  std::vector<std::string> words;
  for (const auto& [label, count] : labels) {
    const absl::string_view name = common::ShortLabelName(label);
    words.push_back(all_heads == 1 ? std::string(name) : absl::StrCat(count, " ", name));
  }
  return absl::StrJoin(words, " ");
}

RenderedColumn RenderColumn(const std::map<HeadPlace, HeadParts>& heads, bool has_labels,
                            const LayerTableOptions& options, bool* several_heads) {
  RenderedColumn rendered;
  // Heads of the same step and layer, unless each has its own row.
  std::map<HeadPlace, std::vector<const HeadParts*>> rows;
  for (const auto& [place, parts] : heads) {
    HeadPlace row = place;
    if (!options.per_head) row.head = 0;
    rows[row].push_back(&parts);
  }
  const auto known = [](const std::vector<ScoreEstimate>& parts) {
    const ScoreEstimate pooled = Pool(parts);
    return pooled.items > 0 ? std::optional<double>(pooled.mean) : std::nullopt;
  };
  for (const auto& [place, row] : rows) {
    std::vector<ScoreEstimate> positional;
    std::vector<ScoreEstimate> symbolic;
    std::vector<common::LabelledScores> labelled;
    for (const HeadParts* parts : row) {
      const ScoreEstimate p = positional.emplace_back(Pool(parts->positional));
      const ScoreEstimate s = symbolic.emplace_back(Pool(parts->symbolic));
      rendered.min_items = std::min(rendered.min_items, p.items);
      rendered.max_items = std::max(rendered.max_items, p.items);
      if (!has_labels || p.items == 0 || s.items == 0) continue;
      labelled.push_back({.positional = p.mean,
                          .symbolic = s.mean,
                          .swapped_mass = known(parts->swapped_mass),
                          .contrast = known(parts->contrast)});
    }
    std::vector<std::string> words;
    for (const double gamma : options.gammas) {
      words.push_back(LabelsText(labelled, row.size(), gamma));
    }
    if (row.size() > 1) *several_heads = true;
    rendered.rows[place] = ScoreCells(MeanOverHeads(positional), MeanOverHeads(symbolic),
                                      labelled.empty() ? "" : absl::StrJoin(words, " | "));
  }
  return rendered;
}

std::string ItemsText(const RenderedColumn& column) {
  return column.min_items == column.max_items
             ? absl::StrCat("n=", Count(column.max_items))
             : absl::StrCat("n=", Count(column.min_items), "-", Count(column.max_items));
}

std::string GammasText(const std::vector<double>& gammas) {
  std::vector<std::string> words;
  for (const double gamma : gammas) words.push_back(Fixed(gamma, 2));
  return absl::StrJoin(words, " | ");
}

std::string Render(const Table& table, bool name_seed, const LayerTableOptions& options) {
  std::map<int32_t, RenderedColumn> columns;
  std::set<HeadPlace> places;
  bool several_heads = false;
  for (const auto& [added, heads] : table.columns) {
    columns[added] = RenderColumn(heads, table.has_labels, options, &several_heads);
    for (const auto& [place, cells] : columns[added].rows) places.insert(place);
  }

  std::string text =
      absl::StrCat("Positional and symbolic scores: ", table.task, ", ", table.checkpoint,
                   name_seed ? absl::StrCat(", seed ", table.seed) : "", ", ",
                   table.hops.size() == 1 ? "hops " : "pooled over hops ",
                   absl::StrJoin(table.hops, ", "), "\n");
  if (!table.params.empty())
    absl::StrAppend(&text, "  ", CutToWidth(table.params, options.width - 2), "\n");
  absl::StrAppend(&text, "  ",
                  several_heads ? "mean over heads \xc2\xb1 mean of their standard errors"
                                : "mean \xc2\xb1 standard error",
                  " over n sequences; ",
                  table.has_labels
                      ? absl::StrCat("labels at gamma ", GammasText(options.gammas))
                      : absl::StrCat("no labels: the model's contents hold their positions (",
                                     common::kPositionInContent, ")"),
                  "\n");

  std::vector<Align> row_columns;
  std::vector<std::string> row_header;
  if (table.has_steps) {
    row_columns.push_back(Align::kRight);
    row_header.push_back("step");
  }
  row_columns.push_back(Align::kRight);
  row_header.push_back("layer");
  if (options.per_head) {
    row_columns.push_back(Align::kRight);
    row_header.push_back("head");
  }

  constexpr size_t kColumnWidth = 13 + 2 + 12 + 2 + 5 + 2;
  const size_t row_width = 2 + 7 * row_columns.size();
  // Several labels stand beside each other.
  const size_t column_width = kColumnWidth + 6 * (options.gammas.size() - 1);
  const size_t fit =
      options.width > row_width + column_width ? (options.width - row_width) / column_width : 1;
  for (auto first = columns.begin(); first != columns.end();) {
    auto last = first;
    for (size_t i = 0; i < fit && last != columns.end(); ++i) ++last;
    std::vector<Align> alignments = row_columns;
    std::vector<std::string> added_header(row_columns.size());
    std::vector<std::string> header = row_header;
    for (auto column = first; column != last; ++column) {
      for (int i = 0; i < 3; ++i) alignments.push_back(Align::kLeft);
      added_header.insert(
          added_header.end(),
          {absl::StrCat("+", column->first, ", ", ItemsText(column->second)), "", ""});
      header.insert(header.end(), {"positional", "symbolic", "label"});
    }
    TextTable lines(std::move(alignments));
    lines.AddRow(std::move(added_header));
    lines.AddRow(std::move(header));
    for (const HeadPlace& place : places) {
      std::vector<std::string> row;
      if (table.has_steps) row.push_back(absl::StrCat(place.step));
      row.push_back(absl::StrCat(place.layer));
      if (options.per_head) row.push_back(absl::StrCat(place.head));
      for (auto column = first; column != last; ++column) {
        const auto cells = column->second.rows.find(place);
        if (cells == column->second.rows.end()) {
          row.insert(row.end(), 3, "");
        } else {
          row.insert(row.end(), cells->second.begin(), cells->second.end());
        }
      }
      lines.AddRow(std::move(row));
    }
    absl::StrAppend(&text, lines.Render(2));
    first = last;
  }
  return text;
}

}  // namespace

ScoreEstimate Pool(const std::vector<ScoreEstimate>& parts) {
  int64_t items = 0;
  double sum = 0;
  for (const ScoreEstimate& part : parts) {
    if (part.items <= 0) continue;
    items += part.items;
    sum += static_cast<double>(part.items) * part.mean;
  }
  if (items == 0) return {0, kNan, kNan};
  const double n = static_cast<double>(items);
  const double mean = sum / n;
  if (items < 2) return {items, mean, kNan};
  // Squared deviations within each part (s^2 (n - 1) with s^2 = n se^2), and of each part's mean
  // from the common one.
  double squares = 0;
  for (const ScoreEstimate& part : parts) {
    if (part.items <= 0) continue;
    const double count = static_cast<double>(part.items);
    if (part.items > 1) squares += part.standard_error * part.standard_error * count * (count - 1);
    squares += count * (part.mean - mean) * (part.mean - mean);
  }
  return {items, mean, std::sqrt(squares / (n - 1) / n)};
}

bool IsLayerScore(const v1::HeadScores& scores) {
  return scores.scorer() == "positional_symbolic" &&
         (scores.metric() == "positional" || scores.metric() == "symbolic" ||
          scores.metric() == "swapped_mass" || scores.metric() == "contrast");
}

std::vector<std::string> LayerTables(const std::vector<v1::HeadScores>& scores,
                                     const LayerTableOptions& options) {
  // Tables in the order in which they first come.
  std::map<std::tuple<std::string, std::string, int64_t, std::string, int32_t, int>, size_t> places;
  std::vector<Table> tables;
  std::set<int64_t> seeds;
  for (const v1::HeadScores& score : scores) {
    if (!IsLayerScore(score)) continue;
    const v1::Cell& cell = score.cell();
    const std::string params = ParamsText(score.params());
    // Hop steps are as many as the hops: such scores cannot be pooled over hops.
    const int32_t hops = options.by_hops || score.steps() > 0 ? cell.hops() : 0;
    // A task may stand in a spec twice; the sequences are then the same, and pooling would count
    // them twice.
    for (int repeat = 0;; ++repeat) {
      const auto [place, is_new] = places.try_emplace(
          {cell.checkpoint(), cell.task(), cell.seed(), params, hops, repeat}, tables.size());
      if (is_new) {
        tables.emplace_back();
        tables.back().checkpoint = cell.checkpoint();
        tables.back().task = cell.task();
        tables.back().seed = cell.seed();
        tables.back().params = params;
      }
      Table& table = tables[place->second];
      if (table.seen.emplace(score.metric(), cell.hops(), cell.added_tokens()).second) {
        AddScores(score, table);
        break;
      }
    }
    seeds.insert(cell.seed());
  }
  std::vector<std::string> texts;
  for (const Table& table : tables) {
    if (!table.columns.empty()) texts.push_back(Render(table, seeds.size() > 1, options));
  }
  return texts;
}

}  // namespace hopscope::cli
