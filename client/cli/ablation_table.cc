#include "client/cli/ablation_table.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/number_text.h"
#include "client/cli/text_table.h"

namespace hopscope::cli {
namespace {

constexpr int kIndent = 2;
// Columns of "-0.1234 ±0.1234" and the space before it.
constexpr size_t kDropWidth = 17;

struct Drop {
  double mean = 0;
  double standard_error = 0;  // NaN below two items
  int64_t items = 0;

  bool Counts() const {
    return mean > kCountingDrop && !(mean <= 2 * standard_error);  // NaN: on its size alone
  }
};

// Heads that are replaced at once.
struct Heads {
  std::string name;
  bool by_itself = false;  // one of "each"
  // By kind, then hops.
  std::map<std::string, std::map<int32_t, Drop>> drops;

  bool Has(const std::string& kind) const { return drops.count(kind) > 0; }
  // The largest over hop counts; among those that count, where any does.
  Drop Largest(const std::string& kind) const {
    const auto& by_hops = drops.at(kind);
    return std::max_element(by_hops.begin(), by_hops.end(),
                            [](const auto& a, const auto& b) {
                              return std::tuple(a.second.Counts(), a.second.mean) <
                                     std::tuple(b.second.Counts(), b.second.mean);
                            })
        ->second;
  }
  bool Counts(const std::string& kind) const { return Largest(kind).Counts(); }
  bool AnyCounts() const {
    return std::any_of(drops.begin(), drops.end(),
                       [this](const auto& one) { return Counts(one.first); });
  }
};

struct Table {
  std::string checkpoint;
  std::string task;
  int64_t seed = 0;
  int32_t added_tokens = 0;
  std::vector<std::string> kinds;  // in the order of the scores
  std::vector<Heads> heads;        // the same

  Heads& At(const std::string& name, bool by_itself) {
    const auto found = std::find_if(heads.begin(), heads.end(), [&](const Heads& one) {
      return one.name == name && one.by_itself == by_itself;
    });
    if (found != heads.end()) return *found;
    heads.push_back({.name = name, .by_itself = by_itself});
    return heads.back();
  }
};

std::string TextParam(const v1::HeadScores& score, const std::string& name) {
  const auto found = score.params().fields().find(name);
  return found == score.params().fields().end() ? "" : found->second.string_value();
}

void AddScores(const v1::HeadScores& score, Table& table) {
  const std::string kind = TextParam(score, "kinds");
  if (std::find(table.kinds.begin(), table.kinds.end(), kind) == table.kinds.end()) {
    table.kinds.push_back(kind);
  }
  const bool each = score.layers() > 0;
  const int heads = std::max(score.heads(), 1);
  for (int i = 0; i < score.mean_size(); ++i) {
    if (i >= score.items_size() || i >= score.standard_error_size() || score.items(i) == 0)
      continue;
    Heads& at = each ? table.At(absl::StrCat(i / heads, ".", i % heads), true)
                     : table.At(TextParam(score, "heads"), false);
    at.drops[kind][score.cell().hops()] = {
        .mean = score.mean(i), .standard_error = score.standard_error(i), .items = score.items(i)};
  }
}

std::string ErrorText(const Drop& drop) {
  return absl::StrCat("\xc2\xb1",
                      std::isfinite(drop.standard_error) ? Fixed(drop.standard_error, 4) : "-");
}

std::string DropText(const Drop& drop, bool with_items) {
  return absl::StrCat(Fixed(drop.mean, 4), " ", ErrorText(drop),
                      with_items ? absl::StrCat(" n=", Count(drop.items)) : "");
}

// The number of sequences that all drops share, where they do.
std::optional<int64_t> CommonItems(const Table& table) {
  std::set<int64_t> items;
  for (const Heads& heads : table.heads) {
    for (const auto& [kind, by_hops] : heads.drops) {
      for (const auto& [hops, drop] : by_hops) items.insert(drop.items);
    }
  }
  if (items.size() != 1) return std::nullopt;
  return *items.begin();
}

std::string Names(const std::vector<const Heads*>& heads) {
  return absl::StrJoin(heads, ", ",
                       [](std::string* out, const Heads* one) { out->append(one->name); });
}

// The largest drop of some heads.
Drop LargestOf(const std::vector<const Heads*>& heads, const std::string& kind) {
  Drop largest = heads.front()->Largest(kind);
  for (const Heads* one : heads) {
    const Drop drop = one->Largest(kind);
    if (drop.mean > largest.mean) largest = drop;
  }
  return largest;
}

std::string UpTo(const std::vector<const Heads*>& heads, const std::string& kind) {
  const Drop drop = LargestOf(heads, kind);
  return absl::StrCat(Fixed(drop.mean, 3), " \xc2\xb1",
                      std::isfinite(drop.standard_error) ? Fixed(drop.standard_error, 3) : "-");
}

// What needed heads do with position and content, by whether a drop counts with either alone.
std::string HowTheyWork(const std::vector<const Heads*>& needed) {
  std::map<std::pair<bool, bool>, std::vector<const Heads*>> groups;
  for (const Heads* heads : needed) {
    if (!heads->Has("positional_only") || !heads->Has("symbolic_only")) continue;
    groups[{heads->Counts("positional_only"), heads->Counts("symbolic_only")}].push_back(heads);
  }
  std::string text;
  for (const auto& [counts, heads] : groups) {
    const auto [positional, symbolic] = counts;
    const std::string names = Names(heads);
    const std::string by_position = UpTo(heads, "positional_only");
    const std::string by_content = UpTo(heads, "symbolic_only");
    if (!positional && symbolic) {
      absl::StrAppend(&text, " ", names, " can go by position alone (drop up to ", by_position,
                      "), not by content alone (", by_content, ").");
    } else if (positional && !symbolic) {
      absl::StrAppend(&text, " ", names, " can go by content alone (drop up to ", by_content,
                      "), not by position alone (", by_position, ").");
    } else if (positional) {
      absl::StrAppend(&text, " ", names, " can go neither by position alone (drop up to ",
                      by_position, ") nor by content alone (", by_content, ").");
    } else {
      absl::StrAppend(&text, " ", names, " can go by either alone (drop up to ", by_position,
                      " and ", by_content, ").");
    }
  }
  return text;
}

std::string Sentence(const Table& table) {
  const auto has = [&](const char* kind) {
    return std::find(table.kinds.begin(), table.kinds.end(), kind) != table.kinds.end();
  };
  if (!has("zero") && !has("mean")) return "";
  const std::string kind = has("zero") ? "zero" : "mean";
  std::vector<const Heads*> needed, spare;
  for (const Heads& heads : table.heads) {
    if (heads.Has(kind)) (heads.Counts(kind) ? needed : spare).push_back(&heads);
  }
  const std::string without =
      kind == "zero" ? "without them" : "with their mean output in their place";
  std::string text = table.task;
  if (needed.empty()) {
    absl::StrAppend(&text, " needs none of these heads by itself: ", without,
                    ", accuracy drops by at most ", UpTo(spare, kind), ".");
    return text;
  }
  absl::StrAppend(&text, " needs ", needed.size() == 1 ? "heads " : "each of the heads ",
                  Names(needed), ": ", without, ", accuracy drops by up to ", UpTo(needed, kind),
                  ".", HowTheyWork(needed));
  if (!spare.empty()) {
    // Each was taken out by itself: together they may be needed.
    const std::string names = spare.size() == 1 ? Names(spare)
                              : spare.size() > 8
                                  ? absl::StrCat("any one of the other ", spare.size())
                                  : absl::StrCat("any one of ", Names(spare));
    absl::StrAppend(&text, " It does without ", names, " (drop at most ", UpTo(spare, kind), ").");
  }
  return text;
}

// Breaks a text at spaces.
std::string Wrapped(const std::string& text, size_t width) {
  std::string lines;
  std::string line;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && kIndent + DisplayWidth(line) + 1 + DisplayWidth(word) > width) {
      absl::StrAppend(&lines, std::string(kIndent, ' '), line, "\n");
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", word);
    begin = end + 1;
  }
  if (!line.empty()) absl::StrAppend(&lines, std::string(kIndent, ' '), line, "\n");
  return lines;
}

std::string Render(const Table& table, bool name_seed, size_t width) {
  const std::optional<int64_t> items = CommonItems(table);
  std::string text =
      absl::StrCat("Ablation: ", table.task, ", ", table.checkpoint, ", +", table.added_tokens,
                   " tokens", name_seed ? absl::StrCat(", seed ", table.seed) : "", "\n");
  absl::StrAppend(
      &text,
      Wrapped(
          absl::StrCat(
              "drop in accuracy where heads are replaced, hops across; \xc2\xb1 "
              "is the standard error of the paired difference",
              items.has_value() ? absl::StrCat("; n = ", Count(*items), " sequences a cell") : ""),
          width));
  std::set<int32_t> all_hops;
  std::vector<const Heads*> shown;
  size_t left_out = 0;
  size_t names = 5;
  for (const Heads& heads : table.heads) {
    for (const auto& [kind, by_hops] : heads.drops) {
      for (const auto& [hops, drop] : by_hops) all_hops.insert(hops);
    }
    if (heads.by_itself && !heads.AnyCounts()) {
      ++left_out;
      continue;
    }
    shown.push_back(&heads);
    names = std::max(names, heads.name.size());
  }
  size_t kinds = 4;
  for (const std::string& kind : table.kinds) kinds = std::max(kinds, kind.size());
  const size_t column = items.has_value() ? kDropWidth : kDropWidth + 12;
  const size_t rest = kIndent + names + 2 + kinds + 2;
  const size_t fit = width > rest + column ? (width - rest) / column : 1;
  const std::vector<int32_t> columns(all_hops.begin(), all_hops.end());
  for (size_t first = 0; first < columns.size() && !shown.empty(); first += fit) {
    const size_t last = std::min(columns.size(), first + fit);
    std::vector<Align> aligns(2 + last - first, Align::kRight);
    aligns[0] = aligns[1] = Align::kLeft;
    TextTable lines(aligns);
    std::vector<std::string> header = {"heads", "kind"};
    for (size_t i = first; i < last; ++i) header.push_back(Counted(columns[i], "hop"));
    lines.AddRow(std::move(header));
    for (const Heads* heads : shown) {
      bool named = false;
      for (const std::string& kind : table.kinds) {
        if (!heads->Has(kind)) continue;
        std::vector<std::string> row = {named ? "" : heads->name, kind};
        named = true;
        const auto& by_hops = heads->drops.at(kind);
        for (size_t i = first; i < last; ++i) {
          const auto drop = by_hops.find(columns[i]);
          row.push_back(drop == by_hops.end() ? "" : DropText(drop->second, !items.has_value()));
        }
        lines.AddRow(std::move(row));
      }
    }
    absl::StrAppend(&text, lines.Render(kIndent));
  }
  if (left_out > 0) {
    absl::StrAppend(
        &text, Wrapped(absl::StrCat("left out: ", Counted(static_cast<int64_t>(left_out), "head"),
                                    " with no drop above ", Fixed(kCountingDrop, 2),
                                    " and two standard errors"),
                       width));
  }
  return absl::StrCat(text, Wrapped(Sentence(table), width));
}

}  // namespace

bool IsAblationDrop(const v1::HeadScores& scores) {
  return scores.scorer() == "ablation" && scores.metric() == "accuracy_drop";
}

std::vector<std::string> AblationTables(const std::vector<v1::HeadScores>& scores, size_t width) {
  std::vector<Table> tables;
  std::set<int64_t> seeds;
  for (const v1::HeadScores& score : scores) {
    if (!IsAblationDrop(score)) continue;
    const v1::Cell& cell = score.cell();
    auto table = std::find_if(tables.begin(), tables.end(), [&](const Table& one) {
      return one.checkpoint == cell.checkpoint() && one.task == cell.task() &&
             one.seed == cell.seed() && one.added_tokens == cell.added_tokens();
    });
    if (table == tables.end()) {
      tables.push_back({.checkpoint = cell.checkpoint(),
                        .task = cell.task(),
                        .seed = cell.seed(),
                        .added_tokens = cell.added_tokens()});
      table = tables.end() - 1;
    }
    AddScores(score, *table);
    seeds.insert(cell.seed());
  }
  std::vector<std::string> texts;
  for (const Table& table : tables) {
    if (!table.heads.empty()) texts.push_back(Render(table, seeds.size() > 1, width));
  }
  return texts;
}

}  // namespace hopscope::cli
