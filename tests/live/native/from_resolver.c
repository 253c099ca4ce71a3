/* outer -> the trampoline of lazy binding -> the linker -> the resolver of an indirect function, which spins. */
static volatile unsigned long turns;

static void never(void) {}

__attribute__((noinline)) static void spin(void) {
  for (unsigned i = 0; i < 1000; ++i) turns = turns + i;
}

static void (*resolve(void))(void) {
  for (;;) spin();
  return never;
}

void bound_late(void) __attribute__((ifunc("resolve")));

int from_resolver(void) {
  bound_late();
  return (int)turns;
}
