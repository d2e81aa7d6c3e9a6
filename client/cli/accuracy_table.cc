#include "client/cli/accuracy_table.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/number_text.h"
#include "client/cli/text_table.h"

namespace hopscope::cli {
namespace {

constexpr int kIndent = 2;

// The cells of one table.
struct Group {
  std::string task;
  std::string checkpoint;
  int64_t seed = 0;
  std::string tokens_digest;
  // By hops, then added tokens.
  std::map<std::pair<int32_t, int32_t>, const v1::CellResult*> cells;
};

std::vector<Group> GroupCells(const std::vector<v1::CellResult>& results) {
  std::vector<Group> groups;
  for (const v1::CellResult& result : results) {
    const v1::Cell& cell = result.cell();
    const std::pair<int32_t, int32_t> place(cell.hops(), cell.added_tokens());
    // A task may stand in a spec twice, with other samples or windows: then each has a table.
    const auto fits = [&](const Group& group) {
      return group.task == cell.task() && group.checkpoint == cell.checkpoint() &&
             group.seed == cell.seed() && group.tokens_digest == cell.tokens_digest() &&
             group.cells.count(place) == 0;
    };
    auto group = std::find_if(groups.begin(), groups.end(), fits);
    if (group == groups.end()) {
      groups.push_back({cell.task(), cell.checkpoint(), cell.seed(), cell.tokens_digest(), {}});
      group = groups.end() - 1;
    }
    group->cells[place] = &result;
  }
  return groups;
}

// The number of items that all cells with a result share, where they do.
std::optional<int64_t> CommonItems(const Group& group) {
  std::set<int64_t> items;
  for (const auto& [place, result] : group.cells) {
    if (result->items() > 0) items.insert(result->items());
  }
  if (items.size() != 1) return std::nullopt;
  return *items.begin();
}

std::string CellText(const v1::CellResult& result, bool with_items) {
  if (result.state() == v1::CellResult::STATE_FAILED) return "failed";
  if (result.items() == 0) return "-";
  if (!result.has_accuracy()) return "no labels";
  return absl::StrCat(Fixed(result.accuracy(), 4), " \xc2\xb1",
                      result.has_standard_error() ? Fixed(result.standard_error(), 4) : "-",
                      with_items ? absl::StrCat(" n=", Count(result.items())) : "");
}

std::string Render(const Group& group, bool name_seed, size_t width) {
  const std::optional<int64_t> items = CommonItems(group);
  std::string text = absl::StrCat(
      "Accuracy: ", group.task,
      group.tokens_digest.empty() ? "" : absl::StrCat(" ", ShortDigest(group.tokens_digest)), ", ",
      group.checkpoint, name_seed ? absl::StrCat(", seed ", group.seed) : "", "\n");
  absl::StrAppend(
      &text, "  hops down, added tokens across; \xc2\xb1 is the standard error",
      items.has_value() ? absl::StrCat("; n = ", Count(*items), " sequences a cell") : "", "\n");

  std::set<int32_t> hops;
  std::set<int32_t> added;
  int64_t items_failed = 0;
  for (const auto& [place, result] : group.cells) {
    hops.insert(place.first);
    added.insert(place.second);
    items_failed += result->items_failed();
  }
  // "failed" and "0.9876 +-0.0123 n=1,234,567" both fit.
  const size_t column = items.has_value() ? 16 : 28;
  const size_t fit = width > column + 6 ? (width - 6) / column : 1;
  const std::vector<int32_t> columns(added.begin(), added.end());
  for (size_t first = 0; first < columns.size(); first += fit) {
    const size_t last = std::min(columns.size(), first + fit);
    TextTable table(std::vector<Align>(1 + last - first, Align::kRight));
    std::vector<std::string> header = {"hops"};
    for (size_t i = first; i < last; ++i) header.push_back(absl::StrCat("+", columns[i]));
    table.AddRow(std::move(header));
    for (const int32_t hop : hops) {
      std::vector<std::string> row = {absl::StrCat(hop)};
      for (size_t i = first; i < last; ++i) {
        const auto cell = group.cells.find({hop, columns[i]});
        row.push_back(cell == group.cells.end() ? "" : CellText(*cell->second, !items.has_value()));
      }
      table.AddRow(std::move(row));
    }
    absl::StrAppend(&text, table.Render(kIndent));
  }
  if (items_failed > 0) {
    absl::StrAppend(&text, "  ", Counted(items_failed, "sequence"), " gave no result (NUMERIC)\n");
  }
  return text;
}

}  // namespace

std::vector<std::string> AccuracyTables(const std::vector<v1::CellResult>& cells, size_t width) {
  const std::vector<Group> groups = GroupCells(cells);
  std::set<int64_t> seeds;
  for (const Group& group : groups) seeds.insert(group.seed);
  std::vector<std::string> tables;
  for (const Group& group : groups) tables.push_back(Render(group, seeds.size() > 1, width));
  return tables;
}

}  // namespace hopscope::cli
