/* Publishes the span that a thread works for, as OpenTelemetry's thread context (OTEP 4947). PAD: bytes of further thread-local variables. */
#include <stdint.h>
#include <string.h>

struct record {
  uint8_t trace[16], span[8], valid, flags;
  uint16_t more;
};

#ifdef PAD
__thread char pad[PAD];
#endif
__thread struct record* otel_thread_ctx_v1;
static __thread struct record records[2];

/* 0: none. A new record, and then the pointer to it, so that a reader finds the one or the other. */
void attach(int trace, int span) {
#ifdef PAD
  pad[PAD - 1] = 1;
#endif
  if (span == 0) {
    *(struct record* volatile*)&otel_thread_ctx_v1 = 0;
    return;
  }
  struct record* free_one = otel_thread_ctx_v1 == &records[0] ? &records[1] : &records[0];
  memset(free_one->trace, trace, sizeof free_one->trace);
  memset(free_one->span, span, sizeof free_one->span);
  free_one->flags = 1;
  free_one->valid = 1;
  *(struct record* volatile*)&otel_thread_ctx_v1 = free_one;
}
