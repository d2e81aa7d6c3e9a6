// The calls that stay open until something happens: watches and long polls. Shutting down ends them
// all.
//
// Thread-safe.
#ifndef HOPSCOPE_SERVER_RPC_OPEN_CALLS_H_
#define HOPSCOPE_SERVER_RPC_OPEN_CALLS_H_

#include <map>
#include <memory>

#include "absl/status/status.h"
#include "common/mutex.h"

namespace hopscope::rpc {

class OpenCall {
 public:
  virtual ~OpenCall() = default;
  // Ends the call with this status as soon as no write is in flight, unless it ended before. Must
  // not block.
  virtual void End(const absl::Status& status) = 0;
};

class OpenCalls {
 public:
  OpenCalls() = default;
  // After the last call was removed, whichever thread did it.
  ~OpenCalls();
  OpenCalls(const OpenCalls&) = delete;
  OpenCalls& operator=(const OpenCalls&) = delete;

  // False after EndAll(): no more calls may be opened.
  [[nodiscard]] bool Add(const std::shared_ptr<OpenCall>& call);
  void Remove(const OpenCall* call);

  // Ends every open call, and makes Add() and draining() say so from now on.
  void EndAll(const absl::Status& status);
  bool draining() const;

 private:
  mutable common::Mutex mutex_;
  std::map<const OpenCall*, std::weak_ptr<OpenCall>> calls_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hopscope::rpc

#endif  // HOPSCOPE_SERVER_RPC_OPEN_CALLS_H_
