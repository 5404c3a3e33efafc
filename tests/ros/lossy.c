/* A network that loses packets, for LD_PRELOAD: a share of the UDP datagrams that a program
 * sends never leaves. The file LOSS holds the share as a double, and may be written at any time.
 * The kernel's own means (tc's netem) are absent on many machines.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static const volatile double *share;
static atomic_uint_fast64_t state;

__attribute__((constructor)) static void begin(void) {
  static const double none = 0.0;
  const char *path = getenv("LOSS");
  int fd = path ? open(path, O_RDONLY) : -1;
  void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, fd, 0);
  share = map == MAP_FAILED ? &none : map;
  if (fd >= 0) close(fd);
  state = (uint64_t)getpid() << 32;
}

/* splitmix64 (Steele, Lea, Flood 2014), whose state threads may share. */
static int is_lost(int fd) {
  int kind = 0;
  socklen_t size = sizeof kind;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &size) || kind != SOCK_DGRAM) return 0;
  size = sizeof kind;
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &kind, &size) || kind != AF_INET) return 0;
  uint64_t z = atomic_fetch_add(&state, 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53 < *share;
}

#define REAL(name) \
  static __typeof__(name) *real; \
  if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
  REAL(sendto);
  return is_lost(fd) ? (ssize_t)size : real(fd, data, size, flags, to, length);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  REAL(sendmsg);
  if (!is_lost(fd)) return real(fd, message, flags);
  ssize_t size = 0;
  for (size_t k = 0; k < message->msg_iovlen; k++) size += (ssize_t)message->msg_iov[k].iov_len;
  return size;
}
