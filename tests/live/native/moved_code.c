/* A library that copies its code to memory without a file, as BOLT's --hugify and iodlr do for huge pages, and
   then computes. */
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
#include <sys/mman.h>

static int find(struct dl_phdr_info* module, size_t size, void* range) {
  (void)size;
  size_t* const found = range;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &module->dlpi_phdr[i];
    const size_t start = module->dlpi_addr + part->p_vaddr;
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
    if ((size_t)&find < start || (size_t)&find >= start + part->p_memsz) continue;
    found[0] = start & ~(size_t)4095;
    found[1] = (start + part->p_memsz + 4095) & ~(size_t)4095;
    return 1;
  }
  return 0;
}

int moves(void) {
  size_t range[2] = {0, 0};
  if (!dl_iterate_phdr(find, range)) return 1;
  const size_t size = range[1] - range[0];
  void* const copy = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return 2;
  memcpy(copy, (void*)range[0], size);
  if (mprotect(copy, size, PROT_READ | PROT_EXEC)) return 3;
  return mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void*)range[0]) == MAP_FAILED ? 4 : 0;
}

long computes_moved(long n) {
  volatile long x = 0;
  for (long i = 0; i < n; ++i) x += i;
  return x;
}
