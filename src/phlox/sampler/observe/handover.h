// Objects that records of the ring hand over: owned by the queue until the reader takes them. One writer and
// one reader, like the ring; the records order them, so there is no lock and nothing atomic but their size,
// which is bounded.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "phlox/python/code_object.h"

namespace phlox::sampler {

struct Handed {
  std::unique_ptr<python::CodeCapture> code;
  std::shared_ptr<void> garbage;  // only to be freed, which takes too long for the writer

  size_t bytes() const { return code != nullptr ? code->bytes.capacity() : 0; }
};

class Handover {
 public:
  explicit Handover(size_t most_bytes) : most_(most_bytes) {}
  ~Handover() {
    while (oldest_->next != nullptr) take();
  }
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  // Writer: puts it in the queue, then calls `send`, which sends the record. False: there is no room for it,
  // or the record was not sent; then `handed` has it again.
  template <class Send>
  bool put(Handed& handed, Send send) {
    const size_t bytes = handed.bytes();
    if (this->bytes() + bytes > most_) return false;
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    Node* const before = newest_;
    before->next = std::make_unique<Node>();
    newest_ = before->next.get();  // from the record on, the reader may free `before`
    newest_->handed = std::move(handed);
    if (send()) return true;
    handed = std::move(newest_->handed);
    newest_ = before;
    before->next.reset();
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }

  // Reader, once for each record that hands something over, in their order.
  Handed take() {
    oldest_ = std::move(oldest_->next);
    bytes_.fetch_sub(oldest_->handed.bytes(), std::memory_order_relaxed);
    return std::move(oldest_->handed);
  }

  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Node {
    Handed handed;
    std::unique_ptr<Node> next;
  };
  const size_t most_;
  std::atomic<size_t> bytes_{0};
  std::unique_ptr<Node> oldest_ = std::make_unique<Node>();  // was taken
  Node* newest_ = oldest_.get();
};

}  // namespace phlox::sampler
