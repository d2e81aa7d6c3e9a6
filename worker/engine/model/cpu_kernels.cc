// Compiled once per instruction set; see simd.h.
#include "worker/engine/model/cpu_kernels.h"

#include "worker/engine/model/simd.h"

namespace hopscope::engine::HOPSCOPE_ISA {
namespace {

template <typename T>
void Norm(const NormCall<T>& call) {
  constexpr int kStep = kLanes<T>;
  const int64_t columns = call.columns;
  const int64_t whole = columns - columns % kStep;
  const T scale = T{1} / static_cast<T>(columns);
  const T epsilon = static_cast<T>(call.epsilon);
  for (int64_t row = 0; row < call.rows; ++row) {
    const T* const in = call.in + row * call.in_stride;
    T* const out = call.out + row * call.out_stride;
    T mean = 0;
    if (!call.rms) {
      Vector<T> sums = {};
      for (int64_t c = 0; c < whole; c += kStep) sums += Load(in + c);
      mean = SumLanes<T>(sums);
      for (int64_t c = whole; c < columns; ++c) mean += in[c];
      mean *= scale;
    }
    Vector<T> squares = {};
    for (int64_t c = 0; c < whole; c += kStep) {
      const Vector<T> centred = Load(in + c) - mean;
      squares += centred * centred;
    }
    T variance = SumLanes<T>(squares);
    for (int64_t c = whole; c < columns; ++c) variance += (in[c] - mean) * (in[c] - mean);
    const T factor = T{1} / static_cast<T>(sqrt(static_cast<double>(variance * scale + epsilon)));
    for (int64_t c = 0; c < whole; c += kStep) {
      Vector<T> value = (Load(in + c) - mean) * factor * Load(call.gain + c);
      if (call.bias != nullptr) value += Load(call.bias + c);
      Store(out + c, value);
    }
    for (int64_t c = whole; c < columns; ++c) {
      out[c] =
          (in[c] - mean) * factor * call.gain[c] + (call.bias != nullptr ? call.bias[c] : T{0});
    }
  }
}

// 1 / (1 + e^-x)
template <typename T>
Vector<T> Sigmoid(Vector<T> x) {
  return T{1} / (T{1} + Exp<T>(-x));
}

// tanh by way of e^(2x), precise where |x| is not small; caps are used on logits, where that holds
// or the error is as small as the logit's own rounding.
template <typename T>
Vector<T> Tanh(Vector<T> x) {
  return T{1} - T{2} / (T{1} + Exp<T>(x + x));
}

template <ActivationKind kKind, typename T>
Vector<T> Activate(Vector<T> x, T gelu_factor) {
  if constexpr (kKind == ActivationKind::kGeluTanh) {
    // (1 + tanh z) / 2 = 1 / (1 + e^-2z)
    const Vector<T> z = gelu_factor * (x + static_cast<T>(0.044715) * x * x * x);
    return x * Sigmoid<T>(z + z);
  } else if constexpr (kKind == ActivationKind::kGeluErf) {
    Vector<T> value;
    for (int i = 0; i < kLanes<T>; ++i) {
      const double lane = x[i];
      value[i] = static_cast<T>(lane * 0.5 * (1.0 + erf(lane * M_SQRT1_2)));
    }
    return value;
  } else if constexpr (kKind == ActivationKind::kRelu) {
    return x < T{0} ? Broadcast(T{0}) : x;
  } else {
    return x * Sigmoid<T>(x);
  }
}

template <ActivationKind kKind, typename T>
void ActivateRows(const ActivationCall<T>& call) {
  constexpr int kStep = kLanes<T>;
  const int64_t columns = call.columns;
  const T constant = static_cast<T>(call.gelu_tanh_factor);
  for (int64_t row = 0; row < call.rows; ++row) {
    const T* const in = call.in + row * call.in_stride;
    const T* const up = call.up == nullptr ? nullptr : call.up + row * call.up_stride;
    T* const out = call.out + row * call.out_stride;
    for (int64_t c = 0; c < columns; c += kStep) {
      const int64_t count = columns - c < kStep ? columns - c : kStep;
      const bool partial = count < kStep;
      const auto load = [&](const T* from) {
        return partial ? LoadPartial(from, count, T{0}) : Load(from);
      };
      Vector<T> x = load(in + c);
      if (call.bias != nullptr) x += load(call.bias + c);
      Vector<T> value = Activate<kKind, T>(x, constant);
      if (up != nullptr) {
        Vector<T> factor = load(up + c);
        if (call.up_bias != nullptr) factor += load(call.up_bias + c);
        value *= factor;
      }
      if (partial) {
        StorePartial(out + c, value, count);
      } else {
        Store(out + c, value);
      }
    }
  }
}

template <typename T>
void ActivateCall(const ActivationCall<T>& call) {
  switch (call.kind) {
    case ActivationKind::kGeluTanh:
      return ActivateRows<ActivationKind::kGeluTanh>(call);
    case ActivationKind::kGeluErf:
      return ActivateRows<ActivationKind::kGeluErf>(call);
    case ActivationKind::kRelu:
      return ActivateRows<ActivationKind::kRelu>(call);
    case ActivationKind::kSilu:
      return ActivateRows<ActivationKind::kSilu>(call);
  }
}

// The vector with its neighbours (2t, 2t+1) exchanged.
template <typename T>
Vector<T> SwapPairs(Vector<T> value) {
  Vector<Bits<T>> order;
  for (int i = 0; i < kLanes<T>; ++i) order[i] = i ^ 1;
  return __builtin_shuffle(value, order);
}

template <typename T>
void Rotate(const RotationCall<T>& call) {
  constexpr int kStep = kLanes<T>;
  const int64_t rotary = call.rotary_columns;
  const int64_t half = rotary / 2;
  for (int64_t row = 0; row < call.rows; ++row) {
    const T* const in = call.in + row * call.in_stride;
    const T* const cosines = call.cosines + row * call.table_step;
    const T* const sines = call.sines + row * call.table_step;
    T* const out = call.out + row * call.out_stride;
    int64_t c = 0;
    if (call.interleaved) {
      for (; c + kStep <= rotary; c += kStep) {
        const Vector<T> x = Load(in + c);
        Store(out + c, (x * Load(cosines + c) + SwapPairs<T>(x) * Load(sines + c)) * call.factor);
      }
      for (; c < rotary; ++c) out[c] = (in[c] * cosines[c] + in[c ^ 1] * sines[c]) * call.factor;
    } else {
      const auto turn = [&](int64_t begin, int64_t partner) {
        int64_t i = 0;
        for (; i + kStep <= half; i += kStep) {
          Store(out + begin + i, (Load(in + begin + i) * Load(cosines + begin + i) +
                                  Load(in + partner + i) * Load(sines + begin + i)) *
                                     call.factor);
        }
        for (; i < half; ++i) {
          out[begin + i] =
              (in[begin + i] * cosines[begin + i] + in[partner + i] * sines[begin + i]) *
              call.factor;
        }
      };
      turn(0, half);
      turn(half, 0);
      c = rotary;
    }
    for (; c + kStep <= call.columns; c += kStep) Store(out + c, Load(in + c) * call.factor);
    for (; c < call.columns; ++c) out[c] = in[c] * call.factor;
  }
}

// Loads the columns from c on; lanes past `end` are `fill`.
template <typename T>
Vector<T> LoadUntil(const T* row, int64_t c, int64_t end, T fill) {
  return end - c >= kLanes<T> ? Load(row + c) : LoadPartial(row + c, end - c, fill);
}

template <typename T>
void StoreUntil(T* row, int64_t c, int64_t end, Vector<T> value) {
  if (end - c >= kLanes<T>) {
    Store(row + c, value);
  } else {
    StorePartial(row + c, value, end - c);
  }
}

template <typename T>
void Softmax(const SoftmaxCall<T>& call) {
  constexpr int kStep = kLanes<T>;
  for (int64_t row = 0; row < call.rows; ++row) {
    T* const logits = call.logits + row * call.stride;
    const int64_t query = call.first_query + row;
    int64_t end = query + 1 - call.first_key;
    if (end > call.columns) end = call.columns;
    int64_t begin = call.window > 0 ? query - call.window + 1 - call.first_key : 0;
    if (begin < 0) begin = 0;

    if (call.softcap > 0) {
      const T cap = static_cast<T>(call.softcap);
      for (int64_t c = begin; c < end; c += kStep) {
        StoreUntil(logits, c, end, cap * Tanh<T>(LoadUntil(logits, c, end, T{0}) / cap));
      }
    }
    if (call.alibi_slope != 0) {
      const T slope = static_cast<T>(call.alibi_slope);
      for (int64_t c = begin; c < end; ++c) {
        logits[c] += slope * static_cast<T>(call.first_key + c - query);
      }
    }

    Vector<T> largest = Broadcast(static_cast<T>(-INFINITY));
    for (int64_t c = begin; c < end; c += kStep) {
      const Vector<T> value = LoadUntil(logits, c, end, static_cast<T>(-INFINITY));
      largest = value > largest ? value : largest;
    }
    const T top = MaxLanes<T>(largest);
    Vector<T> sums = {};
    for (int64_t c = begin; c < end; c += kStep) {
      const Vector<T> value = Exp<T>(LoadUntil(logits, c, end, static_cast<T>(-INFINITY)) - top);
      sums += value;
      StoreUntil(logits, c, end, value);
    }
    const T factor = T{1} / SumLanes<T>(sums);
    for (int64_t c = begin; c < end; c += kStep) {
      StoreUntil(logits, c, end, LoadUntil(logits, c, end, T{0}) * factor);
    }
    for (int64_t c = 0; c < begin; ++c) logits[c] = 0;
    for (int64_t c = end; c < call.columns; ++c) logits[c] = 0;
  }
}

template <typename T>
void AddBias(int64_t rows, int64_t columns, const T* bias, T* matrix, int64_t stride) {
  constexpr int kStep = kLanes<T>;
  const int64_t whole = columns - columns % kStep;
  for (int64_t row = 0; row < rows; ++row) {
    T* const out = matrix + row * stride;
    for (int64_t c = 0; c < whole; c += kStep) Store(out + c, Load(out + c) + Load(bias + c));
    for (int64_t c = whole; c < columns; ++c) out[c] += bias[c];
  }
}

template <typename T>
void Softcap(int64_t rows, int64_t columns, double cap, T* matrix, int64_t stride) {
  const T limit = static_cast<T>(cap);
  for (int64_t row = 0; row < rows; ++row) {
    T* const out = matrix + row * stride;
    for (int64_t c = 0; c < columns; c += kLanes<T>) {
      StoreUntil(out, c, columns, limit * Tanh<T>(LoadUntil(out, c, columns, T{0}) / limit));
    }
  }
}

template <typename T>
int64_t Argmax(int64_t columns, const T* row) {
  int64_t best = 0;
  T extent = 0;  // NaN as soon as one element is NaN or infinite
  for (int64_t c = 0; c < columns; ++c) {
    extent += row[c] * T{0};
    if (row[c] > row[best]) best = c;
  }
  return extent == T{0} ? best : -1;
}

template <typename T>
constexpr CpuKernels<T> kTable = {&Norm<T>,    &ActivateCall<T>, &Rotate<T>, &Softmax<T>,
                                  &AddBias<T>, &Softcap<T>,      &Argmax<T>};

}  // namespace

const CpuKernels<float>& Float32Kernels() { return kTable<float>; }
const CpuKernels<double>& Float64Kernels() { return kTable<double>; }

}  // namespace hopscope::engine::HOPSCOPE_ISA
